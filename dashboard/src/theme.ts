import { Button, createTheme, localStorageColorSchemeManager, Modal, NumberInput, Tabs } from '@mantine/core'

/** Also read by public/scheme.js before the first paint. */
export const schemeManager = localStorageColorSchemeManager({ key: 'boltyard-theme' })

/**
 * The other tokens are in theme.css: from here, Mantine would inject them as a <style>, which the Content-Security-Policy blocks. For the
 * same reason, AppShell, Grid, SimpleGrid and responsive style props are not used.
 */
export const theme = createTheme({
  primaryColor: 'violet',
  defaultRadius: 'md',
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Button: Button.extend({ defaultProps: { size: 'sm' } }),
    // Mantine's scroll lock injects a <style>, too. Instead, app.css keeps the page behind a dialog from scrolling.
    Modal: Modal.extend({
      defaultProps: {
        lockScroll: false,
        centered: true,
        closeButtonProps: { 'aria-label': 'Close dialog' },
        transitionProps: { duration: 120 },
      },
    }),
    // A <header> would be a second banner, next to that of the page.
    ModalHeader: { defaultProps: { component: 'div' } },
    DrawerHeader: { defaultProps: { component: 'div' } },
    NumberInput: NumberInput.extend({
      defaultProps: { hideControls: true, allowDecimal: false, allowNegative: false, thousandSeparator: '\u2009' },
    }),
    Tabs: Tabs.extend({ defaultProps: { keepMounted: false } }),
  },
})
