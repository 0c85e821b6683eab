import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { LineCounter, parseDocument } from 'yaml'
import { isObject } from '../../../protocol/src/bytes.ts'
import type { ConfigMistake, ProxyConfig } from '../../../sdk/src/proxy/index.ts'
import { isSystemError, reasonOf } from '../files.ts'

/** Replaces the path in `openapi` by the content of that file. The path is relative to the configuration file. */
export function withOpenapi(config: ProxyConfig, directory: string, mistakes: ConfigMistake[]): ProxyConfig {
  const path: unknown = config?.openapi
  if (typeof path !== 'string' || mistakes.some((one) => one.path[0] === 'openapi')) return config
  const content = contentOf(resolve(directory, path))
  if (isObject(content)) return { ...config, openapi: content }
  mistakes.push({ path: ['openapi'], message: content })
  return config
}

/** The document, or the reason why it cannot be read. The YAML parser also reads JSON. */
function contentOf(path: string): Record<string, unknown> | string {
  try {
    const lines = new LineCounter()
    const document = parseDocument(readFileSync(path, 'utf8'), { lineCounter: lines, prettyErrors: false })
    const [error] = document.errors
    if (error) {
      const { line, col } = lines.linePos(error.pos[0])
      return `The file is neither YAML nor JSON. Line ${line}, column ${col}: ${error.message}`
    }
    const content: unknown = document.toJS()
    return isObject(content) ? content : 'The file must contain an OpenAPI 3 document.'
  } catch (error) {
    return isSystemError(error) ? `Cannot read the file: ${reasonOf(error)}.` : (error as Error).message
  }
}
