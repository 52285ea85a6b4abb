// The connection to the command: server-sent events over fetch, with the key in a header, which
// no other page can send.
import type { Change } from './model'

export interface About { context: string; namespace?: string }
export interface Listener {
  about(about: About): void
  change(change: Change): void
  /** heard is called whenever the command says anything. */
  heard(): void
  /** lost is called when the command can't be reached; final is true when no retry can help. */
  lost(reason: string, final: boolean): void
}

const kept = 'kubectl-registry-ui-key'
/** silence is how long the command may say nothing. It says something every 5 seconds. */
const silence = 16000

/** takeKey moves the key from the URL to the tab's own storage, out of history and sight. */
export function takeKey(): string {
  const given = /^#key=([A-Za-z0-9]+)$/.exec(location.hash)?.[1]
  if (given) {
    sessionStorage.setItem(kept, given)
    history.replaceState(null, '', location.pathname + '#/clusters')
  }
  return sessionStorage.getItem(kept) ?? ''
}

/** get asks the command. */
export function get(path: string, key: string, signal?: AbortSignal): Promise<Response> {
  return fetch(path, { headers: { Authorization: 'Bearer ' + key }, cache: 'no-store', credentials: 'omit', redirect: 'error', signal })
}

class Refused extends Error {}

/** listen follows the command until the page is closed. */
export async function listen(key: string, to: Listener) {
  for (let wait = 1000; ; wait = Math.min(wait * 1.5, 10000)) {
    try {
      const final = await once(key, to, () => { wait = 1000 })
      if (final) return to.lost(final, true)
      to.lost('the command has ended the connection', false)
    } catch (e) {
      to.lost(e instanceof Refused ? e.message : 'the command does not answer', false)
    }
    await new Promise(done => setTimeout(done, wait))
  }
}

/** once reads one connection to its end, and returns why no other one can succeed. */
async function once(key: string, to: Listener, connected: () => void): Promise<string> {
  const stop = new AbortController()
  let timer = setTimeout(() => stop.abort(), silence)
  try {
    const response = await get('/api/stream', key, stop.signal)
    if (response.status === 401 || response.status === 403) return (await response.text()).trim()
    if (!response.ok || !response.body) throw new Refused((await response.text()).trim() || response.statusText)
    connected()
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let rest = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return ''
      clearTimeout(timer)
      timer = setTimeout(() => stop.abort(), silence)
      to.heard()
      const events = (rest + value).split('\n\n')
      rest = events.pop()!
      for (const event of events) dispatch(event, to)
    }
  } finally {
    clearTimeout(timer)
    stop.abort()
  }
}

function dispatch(event: string, to: Listener) {
  const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? []
  if (name === 'about') to.about(JSON.parse(data!))
  if (name === 'change') to.change(JSON.parse(data!))
}
