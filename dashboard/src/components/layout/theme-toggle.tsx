import { ActionIcon, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { IconMoon, IconSun } from '@tabler/icons-react'

/** Keeps transitions on: to disable them, Mantine would inject a <style> that the Content-Security-Policy blocks. */
export const useColorScheme = () => useMantineColorScheme({ keepTransitions: true })

export function ThemeToggle() {
  const { setColorScheme } = useColorScheme()
  const isDark = useComputedColorScheme('light', { getInitialValueInEffect: false }) === 'dark'
  const label = isDark ? 'Use the light theme' : 'Use the dark theme'
  return (
    <ActionIcon
      variant="default"
      size={30}
      aria-label={label}
      title={label}
      onClick={() => setColorScheme(isDark ? 'light' : 'dark')}
    >
      {isDark ? <IconSun size={16} aria-hidden /> : <IconMoon size={16} aria-hidden />}
    </ActionIcon>
  )
}
