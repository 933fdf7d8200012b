// Python, beside the page: however long it thinks, the page stays awake. It starts once, with the
// package's own files, and then answers questions. All it loads comes from this folder.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = (name) => new URL(name, import.meta.url).href;
const python = start();

async function start() {
  const [pyodide, sources] = await Promise.all([
    loadPyodide({ indexURL: here("pyodide/") }),
    fetch(here("sources.json")).then((response) => response.json()),
  ]);
  pyodide.FS.mkdirTree("/home/pyodide/minimcp");
  for (const [name, text] of Object.entries(sources)) pyodide.FS.writeFile(`/home/pyodide/${name}`, text);
  return pyodide.pyimport("conversation");
}

onmessage = async ({ data }) => {
  try {
    postMessage({ answer: (await python).ask(data.question) });
  } catch (error) {
    postMessage({ broken: String(error).trim().split("\n").pop() });
  }
};
