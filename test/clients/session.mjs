// Plays one session with an MCP server through the TypeScript SDK, of either
// line, and prints what it has seen as one object.
//
//   node session.mjs FOLDER sdk|client legacy|modern ASKING '{"url": …}'
//   node session.mjs FOLDER sdk|client legacy|modern ASKING '{"command": …, "args": […]}'
//
// FOLDER holds the packages, ASKING is a tool that asks who one is. The server
// must list the tools that are named below.
import { createRequire } from 'node:module'
import { join } from 'node:path'

const [folder, line, era, asking, where] = process.argv.slice(2)
const from = createRequire(join(folder, 'session.js'))
const to = JSON.parse(where)
const identity = { name: 'session', version: '1' }
const capabilities = { elicitation: { form: {} } }
const seen = { progress: [], asked: [] }

const answer = async request => {
  seen.asked.push(request.params.message)
  return { action: 'accept', content: { name: 'ada', username: 'ada', email: 'ada@example.com' } }
}

let client, transport
if (line === 'sdk') {
  const { Client } = from('@modelcontextprotocol/sdk/client/index.js')
  const { ElicitRequestSchema } = from('@modelcontextprotocol/sdk/types.js')
  client = new Client(identity, { capabilities })
  client.setRequestHandler(ElicitRequestSchema, answer)
  if (to.url) {
    const { StreamableHTTPClientTransport } = from('@modelcontextprotocol/sdk/client/streamableHttp.js')
    transport = new StreamableHTTPClientTransport(new URL(to.url))
  } else {
    const { StdioClientTransport } = from('@modelcontextprotocol/sdk/client/stdio.js')
    transport = new StdioClientTransport(to)
  }
} else {
  const { Client, StreamableHTTPClientTransport } = from('@modelcontextprotocol/client')
  client = new Client(identity, { capabilities, versionNegotiation: { mode: era === 'modern' ? 'auto' : 'legacy' } })
  client.setRequestHandler('elicitation/create', answer)
  if (to.url) {
    transport = new StreamableHTTPClientTransport(new URL(to.url))
  } else {
    const { StdioClientTransport } = from('@modelcontextprotocol/client/stdio')
    transport = new StdioClientTransport(to)
  }
}

const call = (name, args, options) =>
  line === 'sdk'
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args }, options)

await client.connect(transport)
seen.server = client.getServerVersion()?.name
seen.tools = (await client.listTools()).tools.map(tool => tool.name)
seen.text = (await call('asks__test_simple_text', {})).content
await call('asks__test_tool_with_progress', {}, { onprogress: progress => seen.progress.push(progress.progress) })
seen.elicited = (await call(asking, { message: 'who are you?' })).content

// The call is under way once it has said so.
const controller = new AbortController()
try {
  await call('works__sleep', { ms: 20000 }, { signal: controller.signal, onprogress: () => controller.abort('enough') })
  seen.cancelled = 'no'
} catch (error) {
  seen.cancelled = String(error?.message ?? error)
}
seen.after = (await call('works__echo', { text: 'still here' })).content
await client.close()
console.log(JSON.stringify(seen))
