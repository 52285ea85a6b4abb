// The table of clusters. Only the lines that are in sight are in the document, so that 100,000
// clusters scroll as 10 do.
import { ago, el, exact, number, soon, theirs, until, write } from './dom'
import { strip } from './strip'
import { words, type Column, type Entry, type Fleet, type Line, type Query } from './model'

const height = 32
/** spare are lines that are made above and below what is in sight. */
const spare = 8

const columns: { id: Column | 'history' | 'labels'; title: string; sorts?: Column }[] = [
  { id: 'name', title: 'Cluster', sorts: 'name' },
  { id: 'health', title: 'Health', sorts: 'health' },
  { id: 'history', title: 'Since opened' },
  { id: 'version', title: 'Version', sorts: 'version' },
  { id: 'set', title: 'Set', sorts: 'set' },
  { id: 'region', title: 'Region', sorts: 'region' },
  { id: 'labels', title: 'Labels' },
  { id: 'expires', title: 'Certificate', sorts: 'expires' },
  { id: 'seen', title: 'Last seen', sorts: 'seen' },
]

export interface Actions { open(name: string): void; sort(column: Column): void; toggle(group: string): void }

/** Shown is a line in the document. Its row stays the same element as long as the line is there, so that a change doesn't take it from under a pointer. */
interface Shown { row: HTMLElement; line: Line; index: number }

const keyOf = (line: Line) => 'entry' in line ? 'c/' + line.entry.row.name : 'g/' + line.group

export class Table {
  readonly element: HTMLElement
  private readonly body: HTMLElement
  private readonly heads = new Map<Column, HTMLElement>()
  private lines: Line[] = []
  private active = -1
  private activeKey = ''
  /** shown are the lines in the document, by the key of the line and its place. */
  private shown = new Map<string, Shown>()
  private now = 0
  opened = ''

  constructor(private readonly fleet: Fleet, private readonly actions: Actions) {
    const head = el('div', 'row head', { role: 'row', 'aria-rowindex': 1 }, ...columns.map((column, i) => {
      const sorts = column.sorts
      const cell = el('div', 'cell ' + column.id, { role: 'columnheader', 'aria-colindex': i + 1 },
        sorts ? el('button', 'sort', { type: 'button', click: () => actions.sort(sorts) }, column.title) : column.title)
      if (sorts) this.heads.set(sorts, cell)
      return cell
    }))
    this.body = el('div', 'lines', { role: 'rowgroup' })
    this.element = el('div', 'table', {
      role: 'treegrid', tabindex: 0, 'aria-label': 'Clusters', 'aria-colcount': columns.length, 'aria-readonly': 'true',
      keydown: e => this.key(e as KeyboardEvent), scroll: () => requestAnimationFrame(() => this.draw()),
      focus: () => { if (this.active < 0) this.move(this.top()) },
    }, el('div', 'heads', { role: 'rowgroup' }, head), this.body)
    new ResizeObserver(() => this.draw()).observe(this.element)
  }

  /** show shows lines. The line that is active stays so wherever it has gone. */
  show(lines: Line[], query: Query, now: number) {
    this.lines = lines
    this.now = now
    this.body.style.height = lines.length * height + 'px'
    this.element.setAttribute('aria-rowcount', String(lines.length + 1))
    for (const [column, cell] of this.heads) {
      if (query.sort === column) cell.setAttribute('aria-sort', query.down ? 'descending' : 'ascending')
      else cell.removeAttribute('aria-sort')
    }
    this.active = this.activeKey ? lines.findIndex(line => keyOf(line) === this.activeKey) : -1
    this.draw(true)
    if (this.active < 0 && document.activeElement === this.element) this.move(this.top())
  }

  focus() { this.element.focus({ preventScroll: true }) }

  /** reset scrolls to the first line. */
  reset() { this.element.scrollTop = 0; this.active = -1; this.activeKey = '' }

  private top() { return Math.min(this.lines.length - 1, Math.ceil(this.element.scrollTop / height)) }
  private page() { return Math.max(1, Math.floor(this.element.clientHeight / height) - 2) }

  private key(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.element) return
    const line = this.lines[this.active]
    const steps: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: this.page(), PageUp: -this.page(), Home: -this.lines.length, End: this.lines.length }
    if (event.key in steps) this.move(this.active < 0 ? this.top() : this.active + steps[event.key]!)
    else if (!line) return
    else if (event.key === 'Enter' || event.key === ' ') this.act(line)
    else if ('group' in line && (event.key === 'ArrowLeft' || event.key === 'ArrowRight')) {
      if (line.closed === (event.key === 'ArrowRight')) this.actions.toggle(line.group)
    } else return
    event.preventDefault()
  }

  private act(line: Line) { if ('entry' in line) this.actions.open(line.entry.row.name); else this.actions.toggle(line.group) }

  private move(to: number) {
    this.active = Math.max(0, Math.min(this.lines.length - 1, to))
    const line = this.lines[this.active]
    if (!line) { this.active = -1; return }
    this.activeKey = keyOf(line)
    const top = this.active * height, view = this.element.clientHeight - height
    if (top < this.element.scrollTop) this.element.scrollTop = top
    if (top + height > this.element.scrollTop + view) this.element.scrollTop = top + height - view
    this.draw()
  }

  /** draw makes the lines in sight, and fills those again that are there already. */
  private draw(all = false) {
    const first = Math.max(0, Math.floor(this.element.scrollTop / height) - spare)
    const end = Math.min(this.lines.length, first + Math.ceil(this.element.clientHeight / height) + 2 * spare)
    const stay = new Map<string, Shown>()
    for (let index = first; index < end; index++) {
      const line = this.lines[index]!, key = keyOf(line)
      let item = this.shown.get(key)
      if (!item) {
        item = { row: el('div', 'row', { role: 'row', click: () => this.click(key) }), line, index: -1 }
        this.body.append(item.row)
        this.fill(item)
      } else if (all) {
        item.line = line
        this.fill(item)
      }
      this.shown.delete(key)
      if (item.index !== index) {
        item.index = index
        item.row.style.transform = `translateY(${index * height}px)`
        item.row.setAttribute('aria-rowindex', String(index + 2))
        item.row.id = 'line-' + index
      }
      item.row.classList.toggle('active', index === this.active)
      stay.set(key, item)
    }
    for (const { row } of this.shown.values()) row.remove()
    this.shown = stay
    if (this.active >= first && this.active < end) this.element.setAttribute('aria-activedescendant', 'line-' + this.active)
    else this.element.removeAttribute('aria-activedescendant')
  }

  private fill(item: Shown) {
    const { line, row } = item, open = 'entry' in line && line.entry.row.name === this.opened
    row.classList.toggle('group', 'group' in line)
    row.classList.toggle('open', open)
    row.setAttribute('aria-level', this.grouped() && 'entry' in line ? '2' : '1')
    if ('group' in line) row.setAttribute('aria-expanded', line.closed ? 'false' : 'true')
    else row.setAttribute('aria-selected', open ? 'true' : 'false')
    const cells = 'entry' in line ? this.cells(line.entry) : [this.head(line)]
    // What is there already stays, so that nothing is drawn twice.
    cells.forEach((cell, i) => {
      const old = row.children[i]
      if (!old) row.append(cell); else if (!old.isEqualNode(cell)) old.replaceWith(cell)
    })
  }

  private cells({ row, health }: Entry): HTMLElement[] {
    const now = this.now
    const cells: Record<string, (Node | string)[]> = {
      name: [theirs(row.name, 'strong'), row.display && row.display !== row.name ? theirs(row.display, 'muted display') : ''],
      health: [el('span', 'dot ' + health, { 'aria-hidden': 'true' }), el('span', '', {}, words(row, health)), row.reason && health !== 'ok' ? theirs(row.reason, 'muted reason') : ''],
      history: [strip(this.fleet, row.name, now)],
      version: [theirs(row.version)], set: [theirs(row.set)], region: [theirs(row.region)],
      labels: Object.entries(row.labels ?? {}).filter(([k]) => k !== 'region').slice(0, 6).map(([k, v]) => theirs(`${k}=${v}`, 'label')),
      expires: [el('span', soon(row.expires, now), { title: exact(row.expires) }, until(row.expires, now))],
      seen: [el('span', '', { title: exact(row.seen) }, ago(row.seen, now))],
    }
    return columns.map((column, i) => el('div', 'cell ' + column.id, { role: 'gridcell', 'aria-colindex': i + 1 }, ...cells[column.id]!))
  }

  private head(line: Extract<Line, { group: string }>): HTMLElement {
    return el('div', 'cell', { role: 'gridcell', 'aria-colindex': 1, 'aria-colspan': columns.length },
      el('span', 'twist', { 'aria-hidden': 'true' }), line.group ? theirs(line.group, 'strong') : el('span', 'muted', {}, 'none'),
      el('span', 'muted', {}, `${number(line.total)} ${line.total === 1 ? 'cluster' : 'clusters'}, ${number(line.ok)} available`),
      line.bad ? el('span', 'bad', {}, `${number(line.bad)} not available`) : '')
  }

  private grouped() { return this.lines[0] !== undefined && !('entry' in this.lines[0]) }

  private click(key: string) {
    if (getSelection()?.type === 'Range') return // a person copies a text
    this.activeKey = key
    this.active = this.lines.findIndex(line => keyOf(line) === key)
    const line = this.lines[this.active]
    if (line) this.act(line)
  }
}

/** empty says why there are no lines. */
export function empty(element: HTMLElement, text: string) {
  element.hidden = text === ''
  write(element, text)
}
