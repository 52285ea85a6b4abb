// What the command sends, and what the page makes of it. Nothing here touches the document.

export interface Row {
  name: string; display?: string; state: string; reason?: string; message?: string; since?: string
  version?: string; set?: string; region?: string; expires?: string; seen?: string
  labels?: Record<string, string>; resource?: string
}
export interface Condition { type: string; status: string; reason?: string; message?: string; since?: string }
export interface Authority { subject: string; notAfter: string; sha256: string }
export interface Detail extends Row {
  id?: string; created?: string; manager?: string; source?: string; heartbeat?: number; taints?: string[]
  endpoints: { name: string; url?: string; serverName?: string; proxy?: string; clients?: string; authorities?: Authority[] }[]
  access: { name: string; audience: string; kind: string; how?: string }[]
  conditions: Condition[]
  reporters: { name: string; seen?: string; conditions: Condition[] }[]
  properties: { name: string; value: string }[]
}
export interface Registry {
  key: string; namespace: string; name: string; error?: string; mode?: string; version?: string; desired?: string
  available?: string; ready?: string; paused?: boolean; endpoint?: string; servers?: string; etcd?: string
  etcdVersion?: string; hostVersion?: string; operation?: string; phase?: { name: string; since?: string; held?: boolean }
  problems?: { severity: string; message: string; next: string }[]
  conditions?: Condition[]
  members?: { name: string; ready: boolean; role: string; version?: string; size?: number; quota?: number }[]
  certificates?: { name: string; use?: string; notAfter?: string; renewal?: string }[]
  schedule?: string; nextBackup?: string; oldestBackup?: string; newestBackup?: string
  unprobed?: boolean
  history?: { version: string; state: string; started?: string; ended?: string; message?: string }[]
}
export interface Backup { key: string; registry: string; name: string; phase: string; created?: string; verified?: string; bytes?: number; message?: string }
export type State = 'Loading' | 'Live' | 'Lost' | 'Absent'
export interface Connection { source: string; state: State; since: string; seen?: string; message?: string }
export interface Change {
  connections?: Connection[]
  set?: { clusters?: Row[]; registries?: Registry[]; backups?: Backup[] }
  gone?: Record<string, string[]>
  more?: boolean
}

export type Health = 'ok' | 'bad' | 'unknown' | 'none'
export const healths: Record<Health, string> = { ok: 'Available', bad: 'Not available', unknown: 'Unknown', none: 'Not reported' }

const differs = 'identity differs'

/** health is how a cluster is. What was reported counts for nothing while nothing probes. */
export function health(row: Row, unprobed: boolean): Health {
  switch (row.state) {
    case '': return 'none'
    case differs: return 'bad'
    case 'True': return unprobed ? 'unknown' : 'ok'
    case 'False': return unprobed ? 'unknown' : 'bad'
    default: return 'unknown'
  }
}

/** words says how a cluster is. */
export function words(row: Row, health: Health): string { return row.state === differs ? 'Another cluster' : healths[health] }

/** Mark is a change of a cluster's health. */
export interface Mark { at: number; health: Health | 'gone' }
/** most is how many changes of one cluster are kept. */
const most = 24
/** mostGone is of how many clusters that were removed the history is kept. */
const mostGone = 1000

/** Entry is a cluster with what filters and sorts it, made once for each change. */
export interface Entry { row: Row; health: Health; text: string; minor: string; number: number; expires: number; seen: number; epoch: number }

export class Fleet {
  entries = new Map<string, Entry>()
  history = new Map<string, Mark[]>()
  /** gaps are times in which nothing was known of the fleet. */
  gaps: { from: number; to?: number }[] = []
  /** unprobed says that nothing probes the clusters. */
  unprobed = false
  /** changes is another number after each change of the entries. */
  changes = 0
  private gone = new Set<string>()
  constructor(readonly opened: number) {}

  set(row: Row, now: number, epoch: number) {
    const state = health(row, this.unprobed)
    const entry: Entry = {
      row, health: state, epoch, number: versionNumber(row.version), minor: minorOf(row.version),
      expires: row.expires ? Date.parse(row.expires) : Infinity, seen: row.seen ? -Date.parse(row.seen) : Infinity,
      text: [row.name, row.display, row.version, row.set, row.region, row.reason, words(row, state), ...Object.entries(row.labels ?? {}).map(([k, v]) => `${k}=${v}`)].join('\n').toLowerCase(),
    }
    this.entries.set(row.name, entry)
    this.changes++
    this.gone.delete(row.name)
    this.mark(row.name, entry.health, now)
  }

  /** probed says whether the clusters are probed. */
  probed(is: boolean, now: number) {
    if (is !== this.unprobed) return
    this.unprobed = !is
    for (const entry of [...this.entries.values()]) this.set(entry.row, now, entry.epoch)
  }

  remove(name: string, now: number) {
    if (!this.entries.delete(name)) return
    this.changes++
    this.mark(name, 'gone', now)
    this.gone.add(name)
    for (const oldest of this.gone) {
      if (this.gone.size <= mostGone) break
      this.gone.delete(oldest)
      this.history.delete(oldest)
    }
  }

  /** sweep removes what a new connection has not sent. */
  sweep(epoch: number, now: number) {
    for (const [name, entry] of this.entries) if (entry.epoch !== epoch) this.remove(name, now)
  }

  /** known says whether the fleet is known. */
  known(is: boolean, at: number) {
    const last = this.gaps.at(-1)
    if (is && last && last.to === undefined) last.to = at
    if (!is && (!last || last.to !== undefined)) this.gaps.push({ from: at })
    if (this.gaps.length > most) this.gaps.shift()
  }

  private mark(name: string, health: Mark['health'], at: number) {
    const marks = this.history.get(name) ?? []
    if (marks.at(-1)?.health === health) return
    marks.push({ at, health })
    if (marks.length > most) marks.shift()
    this.history.set(name, marks)
  }

  /** spans are the times since the page was opened with the health that a cluster had in them. */
  spans(name: string, now: number): { from: number; to: number; health: Mark['health'] | 'gap' }[] {
    const marks = this.history.get(name) ?? []
    const out: ReturnType<Fleet['spans']> = marks.map((m, i) => ({ from: m.at, to: marks[i + 1]?.at ?? now, health: m.health }))
    for (const gap of this.gaps) {
      const to = gap.to ?? now
      for (const span of out.splice(0)) {
        if (span.to <= gap.from || span.from >= to) { out.push(span); continue }
        if (span.from < gap.from) out.push({ ...span, to: gap.from })
        out.push({ from: Math.max(span.from, gap.from), to: Math.min(span.to, to), health: 'gap' })
        if (span.to > to) out.push({ ...span, from: to })
      }
    }
    return out
  }
}

export type Column = 'name' | 'health' | 'version' | 'set' | 'region' | 'expires' | 'seen'
export interface Query { text: string; health: Health | ''; group: string; sort: Column; down: boolean }
/** Line is a line of the table: a cluster, or the head of a group. */
export type Line = { entry: Entry } | { group: string; total: number; ok: number; bad: number; closed: boolean }

const worst: Record<Health, number> = { bad: 0, unknown: 1, none: 2, ok: 3 }

/** value is what a column sorts by. */
function value(e: Entry, by: Column): string | number {
  switch (by) {
    case 'name': return e.row.name
    case 'health': return worst[e.health]
    case 'version': return e.number
    case 'set': return e.row.set || '\uffff'
    case 'region': return e.row.region || '\uffff'
    case 'expires': return e.expires
    case 'seen': return e.seen
  }
}

/** label is the value of a label. A label may be called as something that every object has. */
const label = (row: Row, key: string) => row.labels && Object.hasOwn(row.labels, key) ? row.labels[key]! : ''

/** groupOf is the group that a cluster is in. */
function groupOf(e: Entry, by: string): string {
  switch (by) {
    case 'set': return e.row.set || ''
    case 'region': return e.row.region || ''
    case 'version': return e.minor
    case 'health': return healths[e.health]
    default: return label(e.row, by.replace(/^label:/, ''))
  }
}

/** matcher returns whether a cluster has all words of a text; a word after "!" must not be in it. */
export function matcher(text: string): (e: Entry) => boolean {
  const terms = text.toLowerCase().split(/\s+/).filter(t => t && t !== '!')
  return e => terms.every(t => t.startsWith('!') ? !e.text.includes(t.slice(1)) : e.text.includes(t))
}

/** Answer is what the page shows for a query. */
export interface Answer { counts: Record<Health, number> & { all: number }; lines: Line[]; labels: string[] }

/**
 * View answers queries about a fleet. What was sorted is kept, so that another filter looks at each
 * cluster once, and a few changes are put where they belong.
 */
export class View {
  private order: Entry[] = []
  private labels: string[] = []
  private sorted = ''
  private changes = -1
  constructor(private readonly fleet: Fleet) {}

  answer(query: Query, closed: ReadonlySet<string>): Answer {
    this.sort(query)
    const counts = { ok: 0, bad: 0, unknown: 0, none: 0, all: 0 }, found: Entry[] = []
    const match = matcher(query.text)
    for (const e of this.order) {
      if (!match(e)) continue
      counts[e.health]++
      counts.all++
      if (!query.health || e.health === query.health) found.push(e)
    }
    return { counts, lines: lines(found, query, closed), labels: this.labels }
  }

  private sort({ sort, down }: Query) {
    const wanted = sort + down
    if (this.changes === this.fleet.changes && this.sorted === wanted) return
    if (this.changes !== this.fleet.changes) {
      const rest = new Set(this.fleet.entries.values())
      this.order = this.order.filter(e => rest.delete(e))
      this.order.push(...rest)
      this.labels = labelKeys(this.order)
    }
    const sign = down ? -1 : 1
    this.order.sort((a, b) => {
      const x = value(a, sort), y = value(b, sort)
      return x < y ? -sign : x > y ? sign : a.row.name < b.row.name ? -1 : 1
    })
    this.changes = this.fleet.changes
    this.sorted = wanted
  }
}

/** lines returns the lines of the table for the clusters that a query has found. */
function lines(found: Entry[], query: Query, closed: ReadonlySet<string>): Line[] {
  if (!query.group) return found.map(entry => ({ entry }))
  const groups = new Map<string, Entry[]>()
  for (const entry of found) {
    const name = groupOf(entry, query.group)
    const group = groups.get(name)
    if (group) group.push(entry); else groups.set(name, [entry])
  }
  const names = [...groups.keys()].sort((a, b) => a === '' ? 1 : b === '' ? -1 : order.compare(a, b))
  return names.flatMap(name => {
    const members = groups.get(name)!
    const head: Line = { group: name, total: members.length, ok: members.filter(e => e.health === 'ok').length, bad: members.filter(e => e.health === 'bad').length, closed: closed.has(name) }
    return head.closed ? [head] : [head, ...members.map(entry => ({ entry }))]
  })
}

const order = new Intl.Collator('en', { numeric: true })

/** labelKeys are the labels that clusters have, those of most clusters first. */
function labelKeys(entries: Iterable<Entry>): string[] {
  const seen = new Map<string, number>()
  for (const e of entries) for (const key in e.row.labels) seen.set(key, (seen.get(key) ?? 0) + 1)
  return [...seen].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 20).map(([key]) => key)
}

function minorOf(version?: string): string { return /^v\d+\.\d+/.exec(version ?? '')?.[0] ?? version ?? '' }

/** versionNumber orders versions; one that is not reported is after all others. */
export function versionNumber(version?: string): number {
  const parts = /^v(\d+)\.(\d+)(?:\.(\d+))?/.exec(version ?? '')
  return parts ? Number(parts[1]) * 1e8 + Number(parts[2]) * 1e4 + Number(parts[3] ?? 0) : Infinity
}
