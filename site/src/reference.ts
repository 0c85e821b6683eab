import { fieldsOf, idIn, limitsOf, type Schema, type Schemas, sampleOf, typeOf } from './schema.ts'

type Content = Record<string, { schema?: Schema; example?: unknown; examples?: Record<string, { value: unknown }> }>
type Response = { $ref?: string; description?: string; content?: Content }
type Parameter = {
  $ref?: string
  name: string
  in: string
  required?: boolean
  description?: string
  schema: Schema
  example?: unknown
}
type Operation = {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  security?: Record<string, unknown>[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, Response>
}
export type OpenApi = {
  info: { description: string }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Schemas
    parameters: Record<string, Parameter>
    responses: Record<string, Response>
    securitySchemes: Record<string, { description: string }>
  }
}
type Call = Operation & { method: string; path: string }
export type ReferencePage = { path: string; url: string; text: string }

/** Errors that (almost) every call can return. They are described once. */
const COMMON = [
  'BadRequest',
  'Unauthorized',
  'PayloadTooLarge',
  'UnsupportedMediaType',
  'MisdirectedRequest',
  'RateLimited',
  'InternalError',
  'ServiceUnavailable',
]
const TOKENS: Record<string, string> = { apiKey: '$SERVICE_API_KEY', operator: '$OPERATOR_TOKEN' }

const slugOf = (tag: string): string => tag.toLowerCase().replaceAll(' ', '-')
const refName = (ref: string | undefined): string => ref?.split('/').at(-1) ?? ''

/** The reference as Markdown: one page for each tag of the OpenAPI document, after a page with what they have in common. */
export function referencePages(api: OpenApi): ReferencePage[] {
  const calls = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  )
  const tags = [...new Set(calls.flatMap((call) => call.tags))]
  const pages = tags.map((tag) => {
    const own = calls.filter((call) => call.tags.includes(tag))
    const description = api.tags.find(({ name }) => name === tag)?.description ?? ''
    const text = [`# ${tag} API`, description, ...own.map((call) => operationText(call, api))].filter(Boolean).join('\n\n')
    return { path: `docs/api/${slugOf(tag)}.md`, url: `/docs/api/${slugOf(tag)}`, text: `${text}\n` }
  })
  return [{ path: 'docs/api.md', url: '/docs/api', text: overview(api, calls, tags) }, ...pages]
}

function overview(api: OpenApi, calls: Call[], tags: string[]): string {
  const key = api.components.parameters.IdempotencyKey
  const lists = tags.map((tag) => {
    const rows = calls
      .filter((call) => call.tags.includes(tag))
      .map(
        ({ method, path, summary }) =>
          `| \`${method}\` | \`${path}\` | [${summary}](api/${slugOf(tag)}.md#${anchorOf(summary)}) |`,
      )
    return `### ${tag}\n\n| method | path | call |\n|---|---|---|\n${rows.join('\n')}`
  })
  const errors = COMMON.flatMap((name) => errorRows(statusOf(name, calls), api.components.responses[name] ?? {}))
  return `# API overview

${api.info.description}

The same as one document: [openapi.json](openapi.json), OpenAPI 3.1.

## Authentication

Send \`Authorization: Bearer <key>\`. Calls below \`/v1\` take an API key of the account, calls below \`/operator/v1\` the operator token.

\`\`\`sh
curl ${api.servers[0]?.url ?? ''}/v1/api-key -H "Authorization: Bearer $SERVICE_API_KEY"
\`\`\`

## Idempotency-Key

${key?.description ?? ''} Calls that take one say so under *Parameters*.

## Common errors

Every call can return these. Each call lists the others; [Errors](errors.md) says what to do about them.

| status | code | meaning |
|---|---|---|
${errors.join('\n')}

## Calls

${lists.join('\n\n')}
`
}

const anchorOf = (summary: string): string =>
  summary
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

function statusOf(name: string, calls: Call[]): string {
  for (const { responses } of calls) {
    const found = Object.entries(responses).find(([, { $ref }]) => refName($ref) === name)
    if (found) return found[0]
  }
  return ''
}

function operationText(call: Call, api: OpenApi): string {
  const { schemas, responses } = api.components
  const parameters = (call.parameters ?? []).map((one) =>
    one.$ref ? (api.components.parameters[refName(one.$ref)] ?? one) : one,
  )
  const body = call.requestBody && contentOf(call.requestBody.content)
  const success = Object.entries(call.responses).filter(([status]) => status.startsWith('2'))
  const errors = Object.entries(call.responses)
    .filter(([status, { $ref }]) => !status.startsWith('2') && !COMMON.includes(refName($ref)))
    .flatMap(([status, one]) => errorRows(status, one.$ref ? (responses[refName(one.$ref)] ?? one) : one))
  return [
    `## ${call.summary}`,
    `\`${call.method} ${call.path}\``,
    call.description ?? '',
    parameters.length === 0
      ? ''
      : `**Parameters**\n\n| name | in | type | meaning |\n|---|---|---|---|\n${parameters.map((one) => parameterRow(one, schemas)).join('\n')}`,
    body?.schema
      ? withTitle(`**Body**${call.requestBody?.required === false ? ' (optional)' : ''}`, fieldTable(body.schema, schemas))
      : '',
    '**Example**',
    `\`\`\`sh\n${curlOf(call, parameters, api)}\n\`\`\``,
    ...success.map(([status, one]) => responseText(status, one, schemas)),
    errors.length === 0
      ? ''
      : `**Errors**, in addition to the [common ones](../api.md#common-errors)\n\n| status | code | meaning |\n|---|---|---|\n${errors.join('\n')}`,
  ]
    .filter(Boolean)
    .join('\n\n')
}

const cell = (text: string): string => text.replace(/\s*\n\s*/g, ' ').replaceAll('|', '\\|')
const withTitle = (title: string, text: string): string => (text === '' ? '' : `${title}\n\n${text}`)
const contentOf = (content: Content) => content['application/json'] ?? Object.values(content)[0]

function parameterRow({ name, in: place, required, description = '', schema }: Parameter, schemas: Schemas): string {
  const notes = [required ? '**Required.**' : '', description, limitsOf(schema)].filter(Boolean).join(' ')
  return `| \`${name}\` | ${place} | ${cell(typeOf(schema, schemas))} | ${cell(notes)} |`
}

function fieldTable(schema: Schema, schemas: Schemas, isBody = true): string {
  const rows = fieldsOf(schema, schemas).map(({ name, type, isRequired, description }) => {
    const notes = [isBody && isRequired ? '**Required.**' : '', !isBody && !isRequired ? 'Not always present.' : '', description]
    return `| \`${name}\` | ${cell(type)} | ${cell(notes.filter(Boolean).join(' '))} |`
  })
  return rows.length === 0 ? '' : `| field | type | meaning |\n|---|---|---|\n${rows.join('\n')}`
}

function responseText(status: string, { description = '', content }: Response, schemas: Schemas): string {
  const title = `**Response ${status}.** ${description}`
  const media = content && contentOf(content)
  if (!media?.schema) return title
  const sample = media.example ?? Object.values(media.examples ?? {})[0]?.value ?? sampleOf(media.schema, schemas)
  const block =
    typeof sample === 'string' ? `\`\`\`text\n${sample}\n\`\`\`` : `\`\`\`json\n${JSON.stringify(sample, null, 2)}\n\`\`\``
  return [title, fieldTable(media.schema, schemas, false), block].filter(Boolean).join('\n\n')
}

/** The description of an error response has a paragraph for each code: `code`: meaning. */
function errorRows(status: string, { description = '' }: Response): string[] {
  return description.split('\n\n').map((part) => {
    const [, code, meaning] = /^`(\w+)`: ([\s\S]*)$/.exec(part) ?? []
    return `| ${status} | ${code ? `\`${code}\`` : ''} | ${cell(meaning ?? part)} |`
  })
}

function curlOf(call: Call, parameters: Parameter[], api: OpenApi): string {
  const path = call.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const description = parameters.find((one) => one.in === 'path' && one.name === name)?.description
    return idIn(description) ?? `$${name.replace(/([A-Z])/g, '_$1').toUpperCase()}`
  })
  const [scheme] = Object.keys(call.security?.[0] ?? {})
  const body = call.requestBody && contentOf(call.requestBody.content)
  const example = body && (body.example ?? (body.schema ? sampleOf(body.schema, api.components.schemas) : {}))
  const lines = [
    `curl ${call.method === 'GET' ? '' : `-X ${call.method} `}"${api.servers[0]?.url ?? ''}${path}"`,
    ...(scheme ? [`-H "Authorization: Bearer ${TOKENS[scheme] ?? '$TOKEN'}"`] : []),
    ...parameters
      .filter((one) => one.in === 'header' && one.example !== undefined)
      .map((one) => `-H '${one.name}: ${one.example}'`),
    ...(example === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`]),
  ]
  return lines.join(' \\\n  ')
}
