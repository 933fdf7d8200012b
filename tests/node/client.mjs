// Let the npm client list and call the tools of a server, and print what it saw as one JSON object.
//
//     node client.mjs ASKED CALLS TARGET...
//
// ASKED is "auto", "modern", "legacy" or a legacy revision; CALLS is a JSON list of [name, arguments];
// TARGET is a URL or a command.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [asked, calls, command, ...args] = process.argv.slice(2);

const options = { versionNegotiation: { mode: "legacy" } };
if (asked === "auto") {
  options.versionNegotiation.mode = "auto";
} else if (asked === "modern") {
  options.versionNegotiation.mode = { pin: "2026-07-28" };
} else if (asked !== "legacy") {
  options.supportedProtocolVersions = [asked];
}

const transport = command.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args });
const client = new Client({ name: "peer", version: "1.0.0" }, options);

await client.connect(transport, { timeout: 20_000 });
const { tools } = await client.listTools();
const results = [];
for (const [name, given] of JSON.parse(calls)) {
  const result = await client.callTool({ name, arguments: given });
  results.push({
    text: result.content.map((block) => block.text).join(""),
    structured: result.structuredContent ?? null,
    is_error: result.isError ?? false,
  });
}
console.log(
  JSON.stringify({
    protocol_version: client.getNegotiatedProtocolVersion(),
    tools: tools.map((tool) => tool.name),
    results,
  }),
);
await client.close();
