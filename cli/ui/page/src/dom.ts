// Elements and formats. Every text becomes a text node: there is no way from here to markup.

type Child = Node | string | null | undefined | false
type Attributes = Record<string, string | number | boolean | undefined | ((event: Event) => void)>

/** el makes an element; a function is a listener, and a class may follow the name after a dot. */
export function el<K extends keyof HTMLElementTagNameMap>(name: K, classes: string, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(name)
  if (classes) element.className = classes
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value)
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? '' : String(value))
  }
  for (const child of children) if (child) element.append(child)
  return element
}

/** theirs makes a text that others wrote: it can't change the direction of what is around it. */
export function theirs(text: string | undefined, classes = ''): HTMLElement {
  return el('bdi', classes, { title: text || undefined }, text || '')
}

/** write sets a text where it differs, so that a screen reader is told of changes only. */
export function write(element: Element, text: string) { if (element.textContent !== text) element.textContent = text }

// To make a format takes longer than to make a line of the table.
const numbers = new Intl.NumberFormat('en')
const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'long' })
const clocks = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hour12: false })

export const number = (n: number) => numbers.format(n)

const units: [number, string][] = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']]

/** span says how long a time is, in its largest unit, and the next one where it is short. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  const i = units.findIndex(([size]) => seconds >= size)
  if (i < 0) return '0 s'
  const [size, unit] = units[i]!
  const count = Math.floor(seconds / size)
  const next = units[i + 1]
  const rest = next ? Math.floor((seconds % size) / next[0]) : 0
  return count < 3 && next && rest ? `${count} ${unit} ${rest} ${next[1]}` : `${number(count)} ${unit}`
}

export const ago = (time: string | undefined, now: number) => time ? span(now - Date.parse(time)) + ' ago' : ''

/** until says how long it is until a time. */
export function until(time: string | undefined, now: number): string {
  if (!time) return ''
  const left = Date.parse(time) - now
  return left <= 0 ? 'expired' : span(left)
}

/** exact is a time in full. */
export const exact = (time: string | undefined) => time ? dates.format(Date.parse(time)) : ''

/** clock is a time of today. */
export const clock = (time: number) => clocks.format(time)

/** soon is how bad it is that something expires. */
export function soon(time: string | undefined, now: number): '' | 'warn' | 'bad' {
  if (!time) return ''
  const days = (Date.parse(time) - now) / 86400e3
  return days <= 2 ? 'bad' : days <= 21 ? 'warn' : ''
}

export function size(bytes: number): string {
  for (const [limit, unit] of [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']] as const) {
    if (bytes >= limit) return (bytes / limit).toFixed(bytes / limit < 10 ? 1 : 0) + ' ' + unit
  }
  return bytes + ' B'
}
