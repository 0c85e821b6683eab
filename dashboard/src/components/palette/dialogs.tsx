import '../../styles/palette.css'

/** One chunk, loaded on demand. */
export { Palette } from './palette.tsx'
export { ShortcutsDialog } from './shortcuts-dialog.tsx'
