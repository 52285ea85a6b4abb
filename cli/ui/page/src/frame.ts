// What frames the page: whether it is live, and its colors.
import { clock, el, theirs, write } from './dom'
import type { Connection } from './model'

const names: Record<string, string> = { clusters: 'Clusters', registries: 'Registries', backups: 'Backups' }

export interface Lost { since: number; seen: number; reason: string; final: boolean }

/** banners says which connection is lost, and of when what is shown is. */
export function banners(alerts: HTMLElement, live: HTMLElement, connections: Map<string, Connection>, lost: Lost | undefined, unprobed: boolean) {
  const texts: [string, string][] = []
  if (lost) texts.push([`Connection to the command lost since ${clock(lost.since)}; what you see is from ${clock(lost.seen)}.`, lost.final ? lost.reason : `${sentence(lost.reason)}. If you have ended it, run "kubectl registry ui" again.`])
  else {
    if (unprobed) texts.push(['Nothing probes the clusters, so how they are is not known.', 'No replica of the controller leads: see Registries.'])
    for (const c of connections.values()) {
      if (c.state === 'Lost') texts.push([`${names[c.source]}: connection lost since ${clock(Date.parse(c.since))}${c.seen ? `; what you see is from ${clock(Date.parse(c.seen))}` : ''}.`, c.message ?? ''])
    }
  }
  const wanted = texts.flat().join('\n')
  if (alerts.dataset.text !== wanted) {
    alerts.dataset.text = wanted
    alerts.replaceChildren(...texts.map(([head, why]) => el('p', '', {}, el('strong', '', {}, head), ' ', theirs(why))))
  }
  const states = [...connections.values()].map(c => c.state)
  const state = lost || states.includes('Lost') ? 'lost' : states.includes('Loading') || !states.length ? 'loading' : 'ok'
  live.className = 'live ' + state
  write(live, { lost: 'Not live', loading: 'Connecting', ok: 'Live' }[state])
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

const kept = 'kubectl-registry-ui-theme'
const dark = matchMedia('(prefers-color-scheme: dark)')

/** theme has the page's colors: those of the system until the button is used. */
export const theme = {
  button: el('button', 'icon', { type: 'button', click: () => theme.toggle() }),
  get dark() { return (localStorage.getItem(kept) ?? (dark.matches ? 'dark' : 'light')) === 'dark' },
  toggle() { localStorage.setItem(kept, theme.dark ? 'light' : 'dark'); theme.apply() },
  apply() {
    document.documentElement.dataset.theme = theme.dark ? 'dark' : 'light'
    const other = theme.dark ? 'Light colors' : 'Dark colors'
    theme.button.setAttribute('aria-label', other)
    theme.button.title = other + ' (t)'
    write(theme.button, theme.dark ? '☀' : '☾')
  },
}
dark.addEventListener('change', () => theme.apply())
theme.apply()
