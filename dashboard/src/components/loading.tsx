import { Skeleton, VisuallyHidden } from '@mantine/core'

/** As tall as the content it stands in for, so the layout does not shift. */
export function Loading({ height, what = 'Loading' }: { height: number; what?: string }) {
  return (
    <div aria-busy="true">
      <VisuallyHidden>{what}</VisuallyHidden>
      <Skeleton height={height} radius={12} />
    </div>
  )
}
