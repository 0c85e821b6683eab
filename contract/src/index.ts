export { openApiDocument } from './openapi.ts'
export { publicOperations } from './operations.ts'
