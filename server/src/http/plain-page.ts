import { createHash } from 'node:crypto'

/** HTML pages that work even if nothing is built. */

const STYLE = `
body { max-width: 34rem; margin: 18vh auto 0; padding: 0 1.5rem; font: 1rem/1.6 system-ui, sans-serif; color: #1b1628; background: #f7f6f9 }
header { display: flex; align-items: center; gap: .6rem; font-size: 1.25rem; font-weight: 800; letter-spacing: -.03em }
h1 { margin: 2rem 0 .5rem; font-size: 1.9rem; line-height: 1.2; letter-spacing: -.025em }
a { color: #5325d4 }
@media (prefers-color-scheme: dark) { body { color: #ece8f5; background: #131019 } a { color: #bfa9ff } }
`

const styleHash = createHash('sha256').update(STYLE).digest('base64')

/** Allows the style above, and nothing else inline. */
export const PLAIN_PAGE_POLICY = `default-src 'none'; style-src 'sha256-${styleHash}'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`

export function plainPage({
  title,
  heading,
  body,
  head = '',
}: Record<'title' | 'heading' | 'body', string> & { head?: string }): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />${head}
    <title>${title} · Boltyard</title>
    <style>${STYLE}</style>
  </head>
  <body>
    <header><img src="/favicon.ico" width="32" height="32" alt="" /> Boltyard</header>
    <h1>${heading}</h1>
    ${body}
  </body>
</html>
`
}
