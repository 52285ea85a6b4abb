import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fleet, View, matcher, versionNumber, type Query, type Row } from './model'

const all: Query = { text: '', health: '', group: '', sort: 'name', down: false }
const none = new Set<string>()

function fleet(...rows: Partial<Row>[]): Fleet {
  const f = new Fleet(0)
  rows.forEach((row, i) => f.set({ name: `c${i}`, state: 'True', ...row }, 0, 1))
  return f
}
const names = (f: Fleet, query: Partial<Query>, closed: ReadonlySet<string> = none) =>
  new View(f).answer({ ...all, ...query }, closed).lines.map(l => 'entry' in l ? l.entry.row.name : `${l.group}:${l.ok}/${l.total}`).join(' ')

test('filters by words that match and words that must not', () => {
  const f = fleet({ name: 'east', labels: { env: 'prod' } }, { name: 'west', labels: { env: 'test' } }, { name: 'eastern', set: 'Search' })
  assert.equal(names(f, { text: 'EAST' }), 'east eastern')
  assert.equal(names(f, { text: 'east !search' }), 'east')
  assert.equal(names(f, { text: 'env=test' }), 'west')
  assert.equal(names(f, { text: ' ! ' }), 'east eastern west')
  assert.equal([...f.entries.values()].filter(matcher('.*')).length, 0)
})

test('counts by health, and selects it', () => {
  const f = fleet({}, { state: 'False' }, { state: '' }, { state: 'Unknown' }, { state: 'identity differs' })
  assert.deepEqual(new View(f).answer(all, none).counts, { ok: 1, bad: 2, unknown: 1, none: 1, all: 5 })
  assert.equal(names(f, { health: 'bad' }), 'c1 c4')
  assert.equal(names(f, { sort: 'health' }), 'c1 c4 c3 c2 c0')
})

test('takes health for unknown while nothing probes', () => {
  const f = fleet({}, { state: 'False' }, { state: '' }, { state: 'identity differs' })
  f.probed(false, 10)
  assert.deepEqual(new View(f).answer(all, none).counts, { ok: 0, bad: 1, unknown: 2, none: 1, all: 4 })
  assert.equal(names(f, { text: 'unknown' }), 'c0 c1')
  f.set({ name: 'c0', state: 'True' }, 20, 1)
  f.probed(true, 30)
  assert.deepEqual(new View(f).answer(all, none).counts, { ok: 1, bad: 2, unknown: 0, none: 1, all: 4 })
  assert.deepEqual(f.spans('c0', 40).map(s => `${s.health} ${s.from}-${s.to}`), ['ok 0-10', 'unknown 10-30', 'ok 30-40'])
})

test('sorts versions as numbers, and what is not known last', () => {
  const f = fleet({ version: 'v1.9.10' }, { version: 'v1.37.1' }, {}, { version: 'v1.9.9' })
  assert.equal(names(f, { sort: 'version' }), 'c3 c0 c1 c2')
  assert.equal(names(f, { sort: 'version', down: true }), 'c2 c1 c0 c3')
  assert.equal(versionNumber('latest'), Infinity)
  const g = fleet({ seen: '2026-11-23T10:00:00Z' }, {}, { seen: '2026-11-23T11:00:00Z' })
  assert.equal(names(g, { sort: 'seen' }), 'c2 c0 c1')
})

test('groups, with those without a value last', () => {
  const f = fleet({ region: 'us' }, {}, { region: 'eu', state: 'False' }, { region: 'eu', labels: { team: 'a' } })
  assert.equal(names(f, { group: 'region' }), 'eu:1/2 c2 c3 us:1/1 c0 :1/1 c1')
  assert.equal(names(f, { group: 'region' }, new Set(['eu'])), 'eu:1/2 us:1/1 c0 :1/1 c1')
  assert.equal(names(f, { group: 'label:team' }), 'a:1/1 c3 :2/3 c0 c1 c2')
  assert.deepEqual(new View(f).answer(all, none).labels, ['team'])
})

test('answers after changes as one that has seen none', () => {
  const f = fleet(...Array.from({ length: 50 }, (_, i) => ({ name: `n${i * 7 % 50}`, labels: { [`l${i % 3}`]: 'x' } })))
  const v = new View(f)
  v.answer(all, none)
  f.set({ name: 'n7', state: 'False' }, 0, 1)
  f.set({ name: 'new', state: '', labels: { l4: 'x' } }, 0, 1)
  f.remove('n8', 0)
  for (const query of [all, { ...all, sort: 'health' as const }, { ...all, sort: 'health' as const, down: true }, { ...all, text: 'n1', down: true }]) {
    assert.deepEqual(v.answer(query, none), new View(f).answer(query, none))
  }
})

test('groups by labels that are called as what every object has', () => {
  const f = fleet({ labels: { constructor: 'mine' } }, { labels: JSON.parse('{"__proto__":"theirs"}') }, {})
  assert.equal(names(f, { group: 'label:constructor' }), 'mine:1/1 c0 :2/2 c1 c2')
  assert.equal(names(f, { group: 'label:__proto__' }), 'theirs:1/1 c1 :2/2 c0 c2')
})

test('keeps the history of a cluster that goes and comes', () => {
  const f = new Fleet(0)
  const set = (state: string, at: number) => f.set({ name: 'a', state }, at, 1)
  set('True', 10); set('True', 20); set('False', 30)
  f.remove('a', 40)
  set('True', 50)
  assert.deepEqual(f.spans('a', 60), [{ from: 10, to: 30, health: 'ok' }, { from: 30, to: 40, health: 'bad' }, { from: 40, to: 50, health: 'gone' }, { from: 50, to: 60, health: 'ok' }])
  f.known(false, 35); f.known(false, 36); f.known(true, 45); f.known(true, 46)
  assert.deepEqual(f.spans('a', 60).map(s => `${s.health} ${s.from}-${s.to}`), ['ok 10-30', 'bad 30-35', 'gap 35-40', 'gap 40-45', 'gone 45-50', 'ok 50-60'])
})

test('keeps a bounded history', () => {
  const f = new Fleet(0)
  for (let i = 0; i < 1000; i++) f.set({ name: 'a', state: i % 2 ? 'True' : 'False' }, i, 1)
  assert.ok(f.spans('a', 1000).length <= 24)
  for (let i = 0; i < 3000; i++) { f.set({ name: 'x' + i, state: 'True' }, i, 1); f.remove('x' + i, i) }
  assert.ok(f.history.size <= 1002)
})

test('drops what a new connection has not sent', () => {
  const f = fleet({}, {})
  f.set({ name: 'c1', state: 'True' }, 5, 2)
  f.sweep(2, 6)
  assert.deepEqual([...f.entries.keys()], ['c1'])
})

test('groups 10,000 clusters', () => {
  const f = fleet(...Array.from({ length: 10000 }, (_, i) => ({ name: 'cluster-' + (i * 7919) % 10000, region: 'r' + i % 7 })))
  assert.equal(new View(f).answer({ ...all, text: 'cluster r3', group: 'region' }, none).lines.length, 1430)
})
