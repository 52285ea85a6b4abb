// The page of the registries.
import { clock, el, number, size, span, theirs } from './dom'
import { conditions, ends, facts, section, time } from './cluster'
import type { Backup, Connection, Registry } from './model'

/** mostBackups are how many backups of a registry are shown, the newest ones. */
const mostBackups = 12

/** registries makes the page. */
export function registries(all: Registry[], backups: Backup[], connection: Connection | undefined, now: number): Node[] {
  if (!all.length) {
    const text = connection?.state === 'Live' ? 'The host cluster has no ClusterRegistry that you may see.'
      : connection?.state === 'Loading' || !connection ? 'Reading the ClusterRegistries…' : connection.message || 'The ClusterRegistries are not known.'
    return [el('p', 'empty', {}, text)]
  }
  return [...all].sort((a, b) => a.key < b.key ? -1 : 1).map(r => registry(r, backups.filter(b => b.registry === r.key), now))
}

function state(r: Registry): ['ok' | 'bad' | 'unknown', string] {
  if (r.error) return ['unknown', 'Unreadable']
  if (r.available === 'False') return ['bad', 'Not available']
  if (r.available !== 'True') return ['unknown', 'Perhaps not available']
  return r.ready === 'True' ? ['ok', 'Ready'] : ['unknown', 'Available, not ready']
}

function registry(r: Registry, backups: Backup[], now: number): HTMLElement {
  const [mark, words] = state(r)
  return el('article', 'registry', { 'aria-label': 'ClusterRegistry ' + r.key },
    el('header', '', {},
      el('h2', '', {}, theirs(r.name)), el('span', 'muted', {}, theirs(r.namespace)),
      el('span', 'line', {}, el('span', 'dot ' + mark, { 'aria-hidden': 'true' }), words),
      r.paused ? el('span', 'warn', {}, 'Paused: the operator changes nothing') : ''),
    r.error ? theirs(r.error, 'message') : '',
    ...(r.problems ?? []).map(p => el('div', 'problem ' + p.severity, {}, el('p', '', {}, el('span', 'strong', {}, p.severity), ' ', theirs(p.message)), el('p', 'muted', {}, 'Next: ', el('code', '', {}, theirs(p.next))))),
    r.operation ? operation(r, now) : '',
    el('div', 'columns', {},
      el('div', '', {},
        section('Registry', facts([
          ['Version', r.version === r.desired ? r.version : `${r.version || 'none'}, ${r.desired} is desired`], ['Mode', r.mode], ['Servers', r.servers && r.servers + ' ready'], ['Address', r.endpoint],
          ['Host cluster', r.hostVersion],
        ])),
        section('etcd', r.etcd || r.etcdVersion ? facts([['Members', r.etcd && r.etcd + ' ready'], ['Version', r.etcdVersion]]) : el('p', 'muted', {}, 'Nothing is reported.'), r.members?.length ? members(r) : ''),
        section('Certificates', r.certificates?.length ? table('Certificates of ' + r.key, ['Name', 'Use', 'Expires', 'Renewed'], r.certificates.map(c => [theirs(c.name), c.use || '', ends(c.notAfter, now), ends(c.renewal, now)])) : el('p', 'muted', {}, 'None is reported.')),
        r.history?.length ? section('Releases', table('Releases of ' + r.key, ['Release', 'State', 'Began', 'Took'], r.history.slice(0, 6).map(h => [theirs(h.version), theirs(h.state), time(h.started, now), h.started && h.ended ? span(Date.parse(h.ended) - Date.parse(h.started)) : '']))) : ''),
      el('div', '', {},
        section('Conditions', conditions(r.conditions ?? [], now)),
        section('Backups', facts([['Schedule', r.schedule], ['Next', r.nextBackup && when(r.nextBackup, now)], ['Oldest', time(r.oldestBackup, now)], ['Newest', time(r.newestBackup, now)]]), backupTable(r, backups, now)))))
}

const when = (at: string, now: number) => Date.parse(at) > now ? `in ${span(Date.parse(at) - now)}, at ${clock(Date.parse(at))}` : `due since ${clock(Date.parse(at))}`

/** operation shows what is under way. Its progress says how far a phase is, where that is known. */
function operation(r: Registry, now: number): HTMLElement {
  const [, done, all] = /(\d+)\/(\d+)\s*$/.exec(r.operation ?? '') ?? []
  return el('div', 'operation', {},
    el('p', 'line', {}, el('span', 'strong', {}, 'Under way'), theirs(r.operation), r.phase ? el('span', 'muted right', {}, 'phase ', theirs(r.phase.name), ' for ', span(now - Date.parse(r.phase.since ?? '')), r.phase.held ? ', then held' : '') : ''),
    el('progress', '', { 'aria-label': 'Progress of the phase', ...(all ? { max: all, value: done } : {}) }))
}

function members(r: Registry): HTMLElement {
  return table('etcd members of ' + r.key, ['Member', 'State', 'Version', 'Database'], r.members!.map(m => [
    theirs(m.name), el('span', 'line', {}, el('span', 'dot ' + (m.ready ? 'ok' : 'bad'), { 'aria-hidden': 'true' }), m.ready ? m.role : 'not ready'), theirs(m.version),
    m.size ? `${size(m.size)}${m.quota ? ' of ' + size(m.quota) : ''}` : '',
  ]))
}

function backupTable(r: Registry, backups: Backup[], now: number): Node {
  if (!backups.length) return el('p', 'muted', {}, r.schedule ? 'There is no backup yet.' : 'No backup, and none is scheduled.')
  const newest = [...backups].sort((a, b) => (a.created ?? '') < (b.created ?? '') ? 1 : -1)
  const mark = (phase: string) => phase === 'Failed' || phase === 'Damaged' ? 'bad' : phase === 'Completed' || phase === 'Skipped' ? 'ok' : 'unknown'
  return el('div', '', {},
    table('Backups of ' + r.key, ['Backup', 'State', 'Taken', 'Verified', 'Size'], newest.slice(0, mostBackups).map(b => [
      theirs(b.name), el('span', 'line', { title: b.message || undefined }, el('span', 'dot ' + mark(b.phase), { 'aria-hidden': 'true' }), theirs(b.phase || 'Pending')), time(b.created, now), time(b.verified, now), b.bytes ? size(b.bytes) : '',
    ])), newest.length > mostBackups ? el('p', 'muted', {}, `and ${number(newest.length - mostBackups)} older ones`) : '')
}

function table(label: string, heads: string[], rows: (Node | string | undefined)[][]): HTMLElement {
  return el('div', 'scroll', {}, el('table', '', { 'aria-label': label },
    el('thead', '', {}, el('tr', '', {}, ...heads.map(h => el('th', '', { scope: 'col' }, h)))),
    el('tbody', '', {}, ...rows.map(row => el('tr', '', {}, ...row.map(cell => el('td', '', {}, cell)))))))
}
