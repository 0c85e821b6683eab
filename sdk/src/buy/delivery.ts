type Watcher = { onEnd: () => Promise<void>; onBreak: () => Promise<void> }

/**
 * Returns a copy of the response that awaits `onEnd` when its body has been read to the end or cancelled, and `onBreak` when
 * reading fails.
 */
export async function watched(response: Response, { onEnd, onBreak }: Watcher): Promise<Response> {
  if (!response.body) {
    await onEnd()
    return response
  }
  const reader = response.body.getReader()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const part = await reader.read().catch(async (error) => {
          await onBreak()
          throw error
        })
        if (!part.done) return controller.enqueue(part.value)
        await onEnd()
        controller.close()
      },
      async cancel(reason) {
        await onEnd()
        await reader.cancel(reason)
      },
    },
    // Nothing is read before the program asks for it.
    { highWaterMark: 0 },
  )
  const copy = new Response(body, response)
  Object.defineProperty(copy, 'url', { value: response.url })
  return copy
}
