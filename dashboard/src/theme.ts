import { Button, createTheme, localStorageColorSchemeManager, Modal, NumberInput, Tabs } from '@mantine/core'

/** Also read by public/scheme.js, before the first paint. */
export const schemeManager = localStorageColorSchemeManager({ key: 'boltyard-theme' })

/**
 * Colours are in theme.css and not here: given here, Mantine would write them into a <style> of its own, which the
 * Content-Security-Policy refuses. For the same reason AppShell, Grid, SimpleGrid and responsive style props are not used.
 */
export const theme = createTheme({
  primaryColor: 'indigo',
  defaultRadius: 'md',
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Button: Button.extend({ defaultProps: { size: 'sm' } }),
    // Its own lock writes a <style> too; app.css does the same for as long as a dialog is open.
    Modal: Modal.extend({
      defaultProps: {
        lockScroll: false,
        centered: true,
        closeButtonProps: { 'aria-label': 'Close dialog' },
        transitionProps: { duration: 120 },
      },
    }),
    NumberInput: NumberInput.extend({
      defaultProps: { hideControls: true, allowDecimal: false, allowNegative: false, thousandSeparator: '\u2009' },
    }),
    Tabs: Tabs.extend({ defaultProps: { keepMounted: false } }),
  },
})
