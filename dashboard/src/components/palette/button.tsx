import { UnstyledButton, VisuallyHidden } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { openPalette, preloadPalette } from './host.tsx'
import { isApple } from './keys.ts'

/** In the narrow header only the icon is visible. */
export function PaletteButton({ isSmall = false }: { isSmall?: boolean }) {
  const apple = isApple()
  return (
    <UnstyledButton
      className={isSmall ? 'palette-button palette-button-small' : 'palette-button'}
      aria-haspopup="dialog"
      aria-keyshortcuts={apple ? 'Meta+K' : 'Control+K'}
      onPointerEnter={preloadPalette}
      onFocus={preloadPalette}
      onClick={openPalette}
    >
      <IconSearch size={isSmall ? 20 : 16} aria-hidden />
      {!isSmall && <span className="palette-button-name">Search…</span>}
      <VisuallyHidden>{isSmall ? 'Search everything' : 'everything'}</VisuallyHidden>
      {!isSmall && <kbd aria-hidden>{apple ? '⌘K' : 'Ctrl K'}</kbd>}
    </UnstyledButton>
  )
}
