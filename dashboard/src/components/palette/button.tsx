import { UnstyledButton, VisuallyHidden } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { openPalette, preloadPalette } from './host.tsx'
import { isApple } from './keys.ts'

/** In the narrow header only the icon is visible. */
export function PaletteButton({ isSmall = false }: { isSmall?: boolean }) {
  const apple = isApple()
  const name = 'Search or jump to…'
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
      {isSmall ? <VisuallyHidden>{name}</VisuallyHidden> : <span className="palette-button-name">{name}</span>}
      {!isSmall && <kbd aria-hidden>{apple ? '⌘K' : 'Ctrl K'}</kbd>}
    </UnstyledButton>
  )
}
