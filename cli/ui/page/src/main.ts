// The page: what is shown where, and which key does what.
import { cluster } from './cluster'
import { el, number, theirs, write } from './dom'
import { Fleet, View, healths, type Backup, type Change, type Column, type Connection, type Detail, type Health, type Query, type Registry } from './model'
import { banners, theme } from './frame'
import { registries } from './registries'
import { get, listen, takeKey } from './stream'
import { Table, empty } from './table'

const key = takeKey()
const fleet = new Fleet(Date.now())
const view = new View(fleet)
const known = { registries: new Map<string, Registry>(), backups: new Map<string, Backup>() }
const epochs = new Map<string, number>()
const connections = new Map<string, Connection>()
const closed = new Set<string>()
const query: Query = { text: '', health: '', group: '', sort: 'health', down: false }
let epoch = 0
let heard = Date.now()
let lost: { since: number; seen: number; reason: string; final: boolean } | undefined
let detail: Detail | undefined

const search = el('input', 'search', { type: 'search', placeholder: 'Filter by name, version, label=value…', 'aria-label': 'Filter the clusters', autocomplete: 'off', spellcheck: 'false', input: () => { query.text = search.value; refilter() } })
const chips = new Map<Health | '', HTMLButtonElement>()
for (const health of ['', 'bad', 'unknown', 'none', 'ok'] as const) {
  chips.set(health, el('button', 'chip', { type: 'button', 'aria-pressed': 'false', click: () => { query.health = query.health === health ? '' : health; refilter() } },
    health ? el('span', 'dot ' + health, { 'aria-hidden': 'true' }) : '', el('span', '', {}, health ? healths[health] : 'All'), el('span', 'count', {}, '0')))
}
const group = el('select', '', { 'aria-label': 'Group the clusters by', change: () => { query.group = group.value; closed.clear(); refilter() } })
const found = el('p', 'found muted', { role: 'status' })
const nothing = el('p', 'empty', { hidden: true })
const table = new Table(fleet, {
  open: name => go('#/clusters/' + encodeURIComponent(name)),
  sort: (column: Column) => { query.down = query.sort === column && !query.down; query.sort = column; refilter() },
  toggle: name => { if (!closed.delete(name)) closed.add(name); update() },
})
const title = el('h2', '', { tabindex: -1 })
const content = el('div', 'content', { tabindex: 0, role: 'region', 'aria-label': 'Details' })
const panel = el('div', 'panel', { role: 'region', 'aria-label': 'Cluster', hidden: true },
  el('header', '', {}, title, el('button', 'icon', { type: 'button', 'aria-label': 'Close', title: 'Close (Esc)', click: () => close() }, '×')), content)
const clusters = el('main', 'clusters', {}, el('h1', 'hidden', {}, 'Clusters'),
  el('div', 'tools', {}, search, el('div', 'chips', { role: 'group', 'aria-label': 'Health' }, ...chips.values()), el('label', 'group', {}, 'Group', group), found),
  el('div', 'split', {}, el('div', 'whole', {}, table.element, nothing), panel))
const sheet = el('div', 'sheet')
const registriesPage = el('main', 'registries', { hidden: true, tabindex: 0, 'aria-label': 'Registries' }, el('h1', 'hidden', {}, 'Registries'), sheet)
const tabs = { clusters: el('a', '', { href: '#/clusters' }, 'Clusters'), registries: el('a', '', { href: '#/registries' }, 'Registries') }
const context = el('span', 'context muted')
const live = el('span', 'live', { role: 'status' })
const alerts = el('div', 'alerts', { role: 'alert' })
const help = el('dialog', 'help', { 'aria-label': 'Keys' }, el('h2', '', {}, 'Keys'), el('dl', 'facts', {},
  ...[['/', 'filter'], ['↑ ↓ j k', 'line by line'], ['PgUp PgDn Home End', 'page by page, first, last'], ['Enter', 'open the cluster, or open and close the group'], ['← →', 'close and open the group'], ['Esc', 'close the panel, clear the filter'], ['c r', 'clusters, registries'], ['t', 'light or dark'], ['?', 'these keys']]
    .flatMap(([k, what]) => [el('dt', '', {}, ...k!.split(' ').map(one => el('kbd', '', {}, one))), el('dd', '', {}, what!)])),
  el('p', 'muted', {}, 'In the filter, all words must match; a word after ! must not. A label is key=value.'), el('form', '', { method: 'dialog' }, el('button', 'chip', {}, 'Close')))
document.body.replaceChildren(
  el('header', 'top', {}, el('span', 'brand', {}, 'Cluster registry'), context, el('nav', '', { 'aria-label': 'Pages' }, tabs.clusters, tabs.registries), live, theme.button,
    el('button', 'icon', { type: 'button', 'aria-label': 'Keys', title: 'Keys (?)', click: () => help.showModal() }, '?')),
  alerts, clusters, registriesPage, help)

let wanted = false
/** update draws the page once, before the next frame. */
function update() {
  if (wanted) return
  wanted = true
  requestAnimationFrame(() => { wanted = false; draw() })
}

/** refilter shows the answer to another question from its beginning. */
function refilter() { table.reset(); update() }

function draw() {
  const now = Date.now(), count = fleet.entries.size
  const { counts: all, lines: list, labels } = view.answer(query, closed)
  for (const [health, chip] of chips) {
    write(chip.querySelector('.count')!, number(health ? all[health] : all.all))
    chip.setAttribute('aria-pressed', String(query.health === health))
  }
  const shown = query.health ? all[query.health] : all.all
  write(found, `${number(shown)} of ${number(count)} ${count === 1 ? 'cluster' : 'clusters'}`)
  table.show(list, query, now)
  const source = connections.get('clusters')
  empty(nothing, list.length ? '' : count ? 'No cluster matches.' : !source || source.state === 'Loading' ? 'Reading the clusters…' : source.state === 'Live' ? 'There is no cluster in the registry that you may see.' : source.message || 'The clusters are not known.')
  grouping(labels)
  if (!registriesPage.hidden && getSelection()?.type !== 'Range') sheet.replaceChildren(...registries([...known.registries.values()], [...known.backups.values()], connections.get('registries'), now))
  if (table.opened && detail && getSelection()?.type !== 'Range' && !content.contains(document.activeElement)) content.replaceChildren(...cluster(detail, fleet, now))
  banners(alerts, live, connections, lost, fleet.unprobed)
}

/** grouping offers what clusters can be grouped by. */
function grouping(labels: string[]) {
  const options = ['', 'set', 'region', 'version', 'health', ...labels.filter(l => l !== 'region').map(l => 'label:' + l)]
  if (query.group && !options.includes(query.group)) options.push(query.group)
  if (document.activeElement === group || [...group.options].map(o => o.value).join() === options.join()) return
  group.replaceChildren(...options.map(o => el('option', '', { value: o }, o === '' ? 'none' : o.replace(/^label:/, 'label '))))
  group.value = query.group
}

function change(c: Change) {
  const now = Date.now()
  for (const row of c.set?.clusters ?? []) fleet.set(row, now, epoch)
  for (const name of c.gone?.clusters ?? []) fleet.remove(name, now)
  for (const kind of ['registries', 'backups'] as const) {
    for (const one of c.set?.[kind] ?? []) { known[kind].set(one.key, one as Registry & Backup); epochs.set(kind + one.key, epoch) }
    for (const name of c.gone?.[kind] ?? []) { known[kind].delete(name); epochs.delete(kind + name) }
  }
  fleet.probed(![...known.registries.values()].some(r => r.unprobed), now)
  for (const connection of c.connections ?? []) connections.set(connection.source, connection)
  if (c.connections) settle(now)
  const open = location.hash.startsWith('#/clusters/') ? table.opened : ''
  if (open && (c.set?.clusters?.some(r => r.name === open && r.resource !== detail?.resource) || c.gone?.clusters?.includes(open))) void read(open)
  update()
}

/** settle is called when all that there is has been sent: what was not is no longer there. */
function settle(now: number) {
  fleet.sweep(epoch, now)
  for (const kind of ['registries', 'backups'] as const) for (const name of known[kind].keys()) if (epochs.get(kind + name) !== epoch) known[kind].delete(name)
  fleet.known(!lost && connections.get('clusters')?.state === 'Live', now)
}

/** read reads the cluster that is open. */
async function read(name: string) {
  let problem = ''
  try {
    const response = await get('/api/clusters/' + encodeURIComponent(name), key, AbortSignal.timeout(20000))
    if (response.ok) detail = await response.json() as Detail
    else problem = response.status === 404 ? 'It is not in the registry: it was removed, or you may not see it.' : await response.text()
  } catch { problem = 'The command does not answer. A browser opens few connections at once: close other tabs with this page.' }
  if (table.opened !== name) return // another one was opened meanwhile
  if (problem) {
    detail = undefined
    content.replaceChildren(el('p', 'empty', {}, theirs(problem)))
  } else content.replaceChildren(...cluster(detail!, fleet, Date.now()))
}

function close() { go('#/clusters'); table.focus() }

/** go shows what an address names, at once: what is not shown yet can't get the focus. */
function go(hash: string) {
  location.hash = hash
  route()
}

/** nameIn is the name of a cluster in an address, which a person may have typed. */
function nameIn(text: string): string { try { return decodeURIComponent(text) } catch { return '' } }

/** route shows what the URL names. */
function route() {
  if (location.hash.startsWith('#key=')) { // the URL of another run was opened in this tab
    takeKey()
    return location.reload()
  }
  const [, page, name] = /^#\/(clusters|registries)(?:\/([^/]+))?$/.exec(location.hash) ?? [, 'clusters']
  const opened = page === 'clusters' && name ? nameIn(name) : ''
  clusters.hidden = page !== 'clusters'
  registriesPage.hidden = page === 'clusters'
  for (const [tab, link] of Object.entries(tabs)) if (tab === page) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current')
  document.title = (opened || (page === 'registries' ? 'Registries' : 'Clusters')) + ' · kubectl registry'
  const differs = table.opened !== opened
  table.opened = opened
  panel.hidden = !opened
  if (opened && differs) {
    detail = undefined
    title.replaceChildren(theirs(opened))
    content.replaceChildren(el('p', 'empty', {}, 'Reading the cluster…'))
    void read(opened)
    title.focus()
  }
  update()
}

function keys(event: KeyboardEvent) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement
  if (event.key === 'Escape') {
    if (typing && search.value) { search.value = query.text = ''; refilter() }
    else if (!panel.hidden) close()
    else if (query.text || query.health) { search.value = query.text = query.health = ''; refilter() }
    else table.focus()
  } else if (event.target === search && (event.key === 'ArrowDown' || event.key === 'Enter')) table.focus()
  else if (typing) return
  else if (event.key === '/') { if (clusters.hidden) go('#/clusters'); search.focus(); search.select() }
  else if (event.key === 'c') close()
  else if (event.key === 'r') { go('#/registries'); registriesPage.focus() }
  else if (event.key === 't') theme.toggle()
  else if (event.key === '?') help.showModal()
  else return
  event.preventDefault()
}

addEventListener('hashchange', route)
document.addEventListener('keydown', keys)
setInterval(update, 5000)
route()
void listen(key, {
  about(about) { epoch++; lost = undefined; write(context, about.context + (about.namespace ? `, namespace ${about.namespace}` : '')); update() },
  change,
  heard() { heard = Date.now() },
  lost(reason, final) {
    lost = { since: lost?.since ?? Date.now(), seen: heard, reason, final }
    fleet.known(false, Date.now())
    update()
  },
})
