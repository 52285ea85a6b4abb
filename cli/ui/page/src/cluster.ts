// The panel of one cluster.
import { ago, el, exact, soon, span, theirs, until } from './dom'
import { health, words, type Condition, type Detail, type Fleet } from './model'
import { strip } from './strip'

/** section makes a part with a title. */
export function section(title: string, ...children: (Node | string | false | undefined)[]): HTMLElement {
  return el('section', '', {}, el('h3', '', {}, title), ...children)
}

/** facts makes a list of names and values; those without a value are left out. */
export function facts(all: [string, Node | string | undefined][]): HTMLElement {
  const list = el('dl', 'facts')
  for (const [name, value] of all) if (value) list.append(el('dt', '', {}, name), el('dd', '', {}, typeof value === 'string' ? theirs(value) : value))
  return list
}

/** time makes a time as its distance, with the exact one as a title. */
export const time = (at: string | undefined, now: number) => at ? el('time', '', { datetime: at, title: exact(at) }, ago(at, now)) : undefined

/** ends makes the end of a certificate. */
export function ends(at: string | undefined, now: number): HTMLElement | undefined {
  if (!at) return undefined
  const left = until(at, now)
  return el('time', soon(at, now), { datetime: at, title: exact(at) }, left === 'expired' ? left : 'in ' + left)
}

/** good says which status of a condition is the one to hope for. */
const good = (type: string, status: string) => type === 'Progressing' ? 'none' : status === 'True' ? 'ok' : status === 'False' ? 'bad' : 'unknown'

/** conditions makes a list of conditions. */
export function conditions(all: Condition[], now: number): HTMLElement {
  if (!all.length) return el('p', 'muted', {}, 'None is reported.')
  return el('ul', 'conditions', {}, ...all.map(c => el('li', '', {},
    el('span', 'dot ' + good(c.type, c.status), { 'aria-hidden': 'true' }),
    el('div', '', {},
      el('div', 'line', {}, theirs(c.type, 'strong'), el('span', 'muted', {}, c.status), c.reason && c.reason !== c.type ? theirs(c.reason, 'muted') : '', el('span', 'muted right', {}, time(c.since, now))),
      c.message ? theirs(c.message, 'message') : ''))))
}

/** cluster makes what the panel shows. */
export function cluster(d: Detail, fleet: Fleet, now: number): Node[] {
  const state = health(d, fleet.unprobed)
  return [
    section('Health',
      el('p', 'line', {}, el('span', 'dot ' + state, { 'aria-hidden': 'true' }), el('span', 'strong', {}, words(d, state)), d.reason ? theirs(d.reason, 'muted') : '', el('span', 'muted right', {}, d.since ? 'for ' + span(now - Date.parse(d.since)) : '')),
      d.message ? theirs(d.message, 'message') : '',
      el('div', 'wide', {}, strip(fleet, d.name, now)), el('p', 'scale muted', {}, el('span', '', {}, 'page opened'), el('span', '', {}, 'now'))),
    section('Cluster', facts([
      ['Version', d.version], ['Set', d.set], ['Region', d.region], ['Certificate', ends(d.expires, now)], ['Last seen', time(d.seen, now)], ['ID', d.id],
      ['In the registry', time(d.created, now)], ['Managed by', d.manager], ['Made from', d.source],
      ['Sign of life', d.heartbeat ? `expected every ${span(d.heartbeat * 1000)}` : ''], ['Taints', d.taints?.join(', ')],
    ])),
    section('Conditions', conditions(d.conditions, now)),
    section('Endpoints', ...(d.endpoints.length ? d.endpoints.map(e => el('div', 'card', {},
      el('div', 'line', {}, theirs(e.name, 'strong'), theirs(e.url || 'no address yet', 'mono')),
      facts([['Server name', e.serverName], ['Proxy', e.proxy], ['For clients in', e.clients]]),
      ...(e.authorities ?? []).map(a => facts([['CA', a.subject], ['Expires', ends(a.notAfter, now)], ['SHA-256', el('code', '', { title: a.sha256 }, a.sha256.slice(0, 16) + '…')]]))))
      : [el('p', 'muted', {}, 'None: no one can reach it by this entry.')])),
    section('Access', d.access.length ? el('ul', 'plain', {}, ...d.access.map(a => el('li', '', {},
      el('div', 'line', {}, theirs(a.name, 'strong'), el('span', 'muted', {}, `${a.audience}, ${a.kind}`)), a.how ? theirs(a.how, 'mono message') : '')))
      : el('p', 'muted', {}, 'None: people and controllers need credentials from elsewhere.')),
    section('Reporters', ...(d.reporters.length ? d.reporters.map(r => el('div', 'card', {},
      el('div', 'line', {}, theirs(r.name, 'strong'), el('span', 'muted right', {}, r.seen ? 'sign of life ' : 'no sign of life yet', time(r.seen, now))), r.conditions.length ? conditions(r.conditions, now) : ''))
      : [el('p', 'muted', {}, 'No controller reports this cluster.')])),
    ...(d.properties.length ? [section('Properties', facts(d.properties.map(p => [p.name, p.value])))] : []),
    ...(Object.keys(d.labels ?? {}).length ? [section('Labels', el('p', 'labels', {}, ...Object.entries(d.labels!).map(([k, v]) => theirs(`${k}=${v}`, 'label'))))] : []),
  ]
}
