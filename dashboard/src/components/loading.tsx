import { Skeleton, VisuallyHidden } from '@mantine/core'

/** As high as what will be there, so that nothing moves when it comes. */
export function Loading({ height, what = 'Loading' }: { height: number; what?: string }) {
  return (
    <div aria-busy="true">
      <VisuallyHidden>{what}</VisuallyHidden>
      <Skeleton height={height} radius={12} />
    </div>
  )
}
