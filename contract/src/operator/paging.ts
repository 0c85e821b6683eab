import { Type } from 'typebox'
import { text } from '../schemas.ts'

/** Query parameters of the operator's lists. Without `limit`, they return everything, as they did before they had pages. */
export const pagingFields = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'The most to return. Default: all.' })),
  cursor: Type.Optional(text('`nextCursor` of the previous page.')),
  order: Type.Optional(Type.Enum(['oldest', 'newest'], { description: 'Which come first. Default: `oldest`.' })),
}
