import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { root } from '../source-graph.ts'

const read = (path: string): string => readFileSync(join(root, path), 'utf8')

test('the image runs as an unprivileged user, with an init and a health check', () => {
  const lines = read('deploy/docker/Dockerfile').split('\n')
  const stage = lines.slice(lines.findIndex((line) => line.endsWith('AS service')))
  expect(stage.findLast((line) => line.startsWith('USER'))).toBe('USER 1000:1000')
  expect(stage.some((line) => line.startsWith('HEALTHCHECK'))).toBe(true)
  for (const line of lines.filter((line) => line.startsWith('ENTRYPOINT'))) expect(line).toContain('"/usr/bin/tini", "--"')
})

test('every variable of the compose file and the systemd unit is documented, and no secret is a value', () => {
  const { services } = parse(read('deploy/compose/compose.yaml')) as {
    services: { server: { environment: Record<string, string> } }
  }
  const unit = [...read('deploy/systemd/boltyard.service').matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = '']) =>
    line.split(' '),
  )
  const names = [...Object.keys(services.server.environment), ...unit.map((pair) => pair.split('=')[0] ?? '')]
  const docs = `${read('docs/operating.md')} \`NODE_ENV\``
  expect(names.length).toBeGreaterThan(8)
  expect(names.filter((name) => !docs.includes(`\`${name}\``))).toEqual([])
  expect(names.filter((name) => /^(DATABASE_URL|MASTER_KEY|OPERATOR_TOKEN|METRICS_TOKEN)$/.test(name))).toEqual([])
})

test('systemd stops only the service, and a node that runs out of memory does not stop it', () => {
  const unit = read('deploy/systemd/boltyard.service')
  for (const line of ['KillMode=process', 'OOMPolicy=continue', 'RestartPreventExitStatus=75 78', 'NoNewPrivileges=yes'])
    expect(unit.split('\n')).toContain(line)
  // systemd removes these directories when the service stops, but the nodes keep running and still need them.
  expect(unit).not.toMatch(/^(PrivateTmp|DynamicUser|RuntimeDirectory)=/m)
})
