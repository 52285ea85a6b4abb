// The strip that shows a cluster's health since the page was opened.
import { clock, el } from './dom'
import { healths, type Fleet } from './model'

/** strip draws it from left, when the page was opened, to right, now. */
export function strip(fleet: Fleet, name: string, now: number): HTMLElement {
  const whole = Math.max(1, now - fleet.opened)
  const place = (at: number) => (Math.max(0, at - fleet.opened) / whole * 100).toFixed(2) + '%'
  const spans = fleet.spans(name, now), text = describe(spans)
  const parts = spans.map(s => `var(--h-${s.health}) ${place(s.from)} ${place(s.to)}`)
  const element = el('span', 'strip', { role: 'img', 'aria-label': text, title: text })
  if (spans[0] && spans[0].from > fleet.opened) parts.unshift(`var(--h-gone) 0% ${place(spans[0].from)}`)
  if (parts.length) element.style.backgroundImage = `linear-gradient(90deg, ${parts.join(', ')})`
  return element
}

/** describe says the last changes in words. */
function describe(spans: ReturnType<Fleet['spans']>): string {
  const texts = spans.slice(-5).map(s => {
    const words = s.health === 'gone' ? 'not in the registry' : s.health === 'gap' ? 'not known' : healths[s.health].toLowerCase()
    return `${words} from ${clock(s.from)}`
  })
  return texts.join(', ') || 'no history'
}
