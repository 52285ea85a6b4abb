// Builds the page's script and style from src, or runs the tests of src/*.test.ts.
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { build } from 'esbuild'

// The hash of all that the result depends on. A Go test compares it, so that a change of a
// source without "make ui" is found without Node.js.
const inputs = ['package-lock.json', 'build.mjs', ...readdirSync('src').map(name => 'src/' + name)].sort()
const hash = createHash('sha256')
for (const name of inputs) hash.update(name + '\n').update(readFileSync(name))
const banner = `/* Made by "make ui" from src, whose SHA-256 is ${hash.digest('hex')}. */`

const common = { bundle: true, charset: 'utf8', logLevel: 'warning' }
if (process.argv[2] === 'test') {
  const tests = readdirSync('src').filter(name => name.endsWith('.test.ts')).map(name => 'src/' + name)
  await build({ ...common, entryPoints: tests, platform: 'node', format: 'esm', outExtension: { '.js': '.mjs' }, outdir: '.test' })
  const { status } = spawnSync(process.execPath, ['--test', '.test/'], { stdio: 'inherit' })
  rmSync('.test', { recursive: true })
  process.exit(status ?? 1)
}
const out = process.argv[2] ?? '.'
for (const [entry, file, format] of [['src/main.ts', 'app.js', 'esm'], ['src/app.css', 'app.css', undefined]]) {
  // Names stay as they are: what is embedded can be read.
  const { outputFiles } = await build({ ...common, entryPoints: [entry], write: false, format, target: ['chrome111', 'firefox115', 'safari16.4'], minifyWhitespace: file.endsWith('.css'), legalComments: 'none' })
  writeFileSync(`${out}/${file}`, banner + '\n' + outputFiles[0].text)
}
