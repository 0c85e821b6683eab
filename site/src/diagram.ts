const RELATION = /^\s*(\w+)\s+[|}o]+--[|{o]+\s+(\w+)\s*:\s*"?([^"\n]*?)"?$/gm
/** `a --> b`, `a -. label .-> b`, `a -- label --> b`, `a --- b`. */
const ARROW = /^\s*(\S+)\s+(?:-->|---|-\.\s+(.*?)\s+\.->|--\s+(.*?)\s+-->)\s+(\S+)$/gm

/**
 * A Mermaid diagram as a Markdown table. GitHub draws such diagrams. Here, drawing them would need a large script and inline styles, which
 * the Content-Security-Policy blocks, and a table also works with a screen reader.
 */
export function relationsOf(mermaid: string): string {
  const relations = [...mermaid.matchAll(RELATION)].map(([, from, to, label]) => `| \`${from}\` | \`${to}\` | ${label} |`)
  if (relations.length > 0) return `| table | related to | as |\n|---|---|---|\n${relations.join('\n')}\n`
  const names = new Map([...mermaid.matchAll(/(\w+)\[([^\]]+)\]/g)].map(([, id = '', name = '']) => [id, name]))
  const nameOf = (node: string): string => {
    const id = node.replace(/\[.*/, '')
    return `\`${names.get(id) ?? id}\``
  }
  const targets = new Map<string, string[]>()
  for (const [, from = '', dotted, plain, to = ''] of mermaid.matchAll(ARROW)) {
    const label = dotted ?? plain
    targets.set(nameOf(from), [...(targets.get(nameOf(from)) ?? []), `${nameOf(to)}${label ? ` (${label})` : ''}`])
  }
  const rows = [...targets].map(([from, to]) => `| ${from} | ${to.join(', ')} |`)
  return `| part | uses |\n|---|---|\n${rows.join('\n')}\n`
}
