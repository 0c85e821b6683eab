import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

/** The path of a browser that is installed on this machine. None is downloaded. */
export function findChromium(): string | undefined {
  const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin']
  return NAMES.flatMap((name) => directories.map((directory) => join(directory, name))).find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export function openChromium(executablePath: string): Promise<Browser> {
  // A container's /dev/shm often has only 64 MB, and pages that need more crash in the middle of a test without an error message.
  return chromium.launch({ executablePath, args: ['--disable-dev-shm-usage', '--disable-gpu'], timeout: 120_000 })
}

/** To be evaluated in a page: resolves when all transitions have finished. Spinners never finish, so they are ignored. */
export const FADED = `Promise.all(document.getAnimations()
  .filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity)
  .map((animation) => animation.finished.catch(() => undefined)))`
