import { Type } from 'typebox'
import { anyObject, named, readableText, strict, text } from './schemas.ts'

const BindingProfile = Type.Enum(['http:1', 'mcp:1'], {
  $id: 'X402BindingProfile',
  description: 'How the request was hashed: `http:1` for an HTTP request, `mcp:1` for the call of an MCP tool.',
})
const HASH = '^[0-9a-f]{64}$'
export const requestHash = (description: string) => Type.String({ pattern: HASH, description })
const PRINTABLE = '^[\\x21-\\x7e]{1,1000}$'
const names = (description: string) =>
  Type.Array(Type.String({ pattern: '^[\\x20-\\x7e]{1,64}$' }), { maxItems: 20, uniqueItems: true, description })

export const X402ResourceParams = strict(
  {
    url: Type.String({ pattern: PRINTABLE, description: 'The public URL that is sold. For `http:1`, the URL that was hashed.' }),
    description: Type.Optional(readableText('Defaults to the description of the payment.')),
    mimeType: Type.Optional(Type.String({ pattern: '^[\\x21-\\x7e]{1,100}$', description: 'The type of what is delivered.' })),
  },
  { $id: 'X402ResourceParams', description: 'What the client buys.' },
)

export const X402BindingParams = strict(
  {
    headers: Type.Optional(names('`http:1` only: the lowercase names of the headers that were hashed, in ascending order.')),
    server: Type.Optional(Type.String({ pattern: PRINTABLE, description: '`mcp:1` only: the URI of the MCP server.' })),
    metadata: Type.Optional(names('`mcp:1` only: the names of the members of `_meta` that were hashed, in ascending order.')),
  },
  { $id: 'X402BindingParams', description: '`{ headers }` for `http:1`, `{ server, metadata }` for `mcp:1`.' },
)

export const X402Params = strict(
  {
    resource: X402ResourceParams,
    requestHash: requestHash('The hash of the request that is sold. The invoice contains it as its description hash.'),
    requestBindingProfile: BindingProfile,
    requestBindingParams: X402BindingParams,
  },
  {
    $id: 'X402Params',
    description: 'What an x402 payment is bound to.',
    examples: [
      {
        resource: { url: 'https://api.example.com/article/A' },
        requestHash: '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018',
        requestBindingProfile: 'http:1',
        requestBindingParams: { headers: [] },
      },
    ],
  },
)

export const MppParams = strict(
  {
    header: Type.Literal('Payment-Authorization', {
      description: 'The client sends its credential in this header, and `Authorization` stays free for your own use.',
    }),
  },
  { $id: 'MppParams', description: 'Options of an MPP challenge.' },
)

/** The fields of the x402 specification, so that they can be passed on unchanged. */
export const X402Requirements = named(
  {
    scheme: text('Always `exact`.'),
    network: text('The Lightning network, `lnbtc:` and the beginning of the hash of its first block.'),
    amount: text('The price in millisatoshis.'),
    asset: text('Always `BTC`.'),
    payTo: text('The public key of the node that is paid.'),
    maxTimeoutSeconds: Type.Integer({ description: 'The lifetime of the invoice.' }),
    extra: anyObject('The invoice, and the request that it is bound to.'),
  },
  { $id: 'X402Requirements', description: 'An entry of `accepts` in PAYMENT-REQUIRED.' },
)
