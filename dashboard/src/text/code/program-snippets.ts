import { base, chargeCurl, createNodeCurl, REPEAT_KEY, RESOURCE, redeemCurl, whoAmICurl } from './snippets.ts'

export const LANGUAGES = { curl: 'curl', typescript: 'TypeScript', python: 'Python' } as const
export type Language = keyof typeof LANGUAGES

/** A value that the program takes from its environment. */
class Env {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}
type Value = string | number | Env | { [name: string]: Value }
type Call = { method?: 'POST'; path: (string | Env)[]; headers?: Record<string, string>; body?: Value }

type Snippets = { whoAmI: string; createNode: string; charge: string; redeem: string }

/** The same four calls in each language. They need nothing but curl, Node.js 20 or Python 3. */
export function snippetsIn(language: Language, publicUrl: string, nodeId?: string): Snippets {
  if (language === 'curl')
    return {
      whoAmI: whoAmICurl(publicUrl),
      createNode: createNodeCurl(publicUrl),
      charge: chargeCurl(publicUrl, nodeId),
      redeem: redeemCurl(publicUrl, nodeId),
    }
  const node = nodeId ?? new Env('NODE_ID')
  const inLanguage = language === 'python' ? python : typescript
  const write = ({ path, ...call }: Call): string => inLanguage({ ...call, path: [base(publicUrl), ...path] })
  return {
    whoAmI: write({ path: ['/api-key'] }),
    createNode: write({ method: 'POST', path: ['/nodes'], headers: { 'Idempotency-Key': REPEAT_KEY }, body: { name: 'shop' } }),
    charge: write({
      method: 'POST',
      path: ['/gateway/payments'],
      body: { nodeId: node, amountSat: 100, description: 'One report', resource: RESOURCE, protocol: 'l402' },
    }),
    redeem: write({
      method: 'POST',
      path: ['/gateway/payments/', new Env('PAYMENT_ID'), '/redeem'],
      body: {
        expect: { nodeId: node, resource: RESOURCE, minAmountSat: 100 },
        requestId: 'request-1',
        credential: new Env('CREDENTIAL'),
      },
    }),
  }
}

/** A request with this body, without anything from the environment but the key. */
export function requestIn(language: Language, publicUrl: string, path: string, body: { [name: string]: Value }): string {
  const inLanguage = { typescript, python, curl }[language]
  return inLanguage({ method: 'POST', path: [base(publicUrl), path], body })
}

/** The here-document is quoted ('JSON'), so that the shell expands nothing in the body. */
const curl = ({ path, body }: Call): string =>
  `curl -X POST ${path.join('')} \\
  -H "Authorization: Bearer $SERVICE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d @- <<'JSON'
${JSON.stringify(body, null, 2)}
JSON`

const indented = (text: string, by: string): string => text.replaceAll('\n', `\n${by}`)

function typescript({ method, path, headers = {}, body }: Call): string {
  const url = path.map((part) => (part instanceof Env ? `\${process.env.${part.name}}` : part)).join('')
  const own = Object.entries(headers).map(([name, value]) => `\n    '${name}': '${value}',`)
  const type = body === undefined ? '' : "\n    'Content-Type': 'application/json',"
  return `const response = await fetch(${path.length > 2 ? `\`${url}\`` : `'${url}'`}, {${method ? `\n  method: '${method}',` : ''}
  headers: {
    Authorization: \`Bearer \${process.env.SERVICE_API_KEY}\`,${type}${own.join('')}
  },${body === undefined ? '' : `\n  body: JSON.stringify(${indented(tsValue(body), '  ')}),`}
})
console.log(response.status, await response.text())`
}

function tsValue(value: Value): string {
  if (value instanceof Env) return `process.env.${value.name}`
  if (typeof value === 'object') {
    const fields = Object.entries(value).map(([name, one]) => `\n  ${name}: ${indented(tsValue(one), '  ')},`)
    return `{${fields.join('')}\n}`
  }
  // What a person typed may contain quotes. A JSON string means the same in TypeScript and Python.
  return typeof value === 'string' && /^[\w $./-]*$/.test(value) ? `'${value}'` : JSON.stringify(value)
}

/** Without blank lines inside blocks, which would end them at Python's prompt. */
function python({ method, path, headers = {}, body }: Call): string {
  const url = path.map((part) => (part instanceof Env ? `{os.environ['${part.name}']}` : part)).join('')
  const own = Object.entries(headers).map(([name, value]) => `\n        "${name}": "${value}",`)
  const type = body === undefined ? '' : '\n        "Content-Type": "application/json",'
  return `import json, os, urllib.error, urllib.request
request = urllib.request.Request(
    ${path.length > 2 ? 'f' : ''}"${url}",${method ? `\n    method="${method}",` : ''}
    headers={
        "Authorization": "Bearer " + os.environ["SERVICE_API_KEY"],${type}${own.join('')}
    },${body === undefined ? '' : `\n    data=json.dumps(${indented(pyValue(body), '    ')}).encode(),`}
)
try:
    with urllib.request.urlopen(request) as response:
        print(response.status, response.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())`
}

function pyValue(value: Value): string {
  if (value instanceof Env) return `os.environ["${value.name}"]`
  if (typeof value === 'object') {
    const fields = Object.entries(value).map(([name, one]) => `\n    "${name}": ${indented(pyValue(one), '    ')},`)
    return `{${fields.join('')}\n}`
  }
  return JSON.stringify(value)
}
