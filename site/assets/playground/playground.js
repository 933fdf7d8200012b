// The page's half of the playground. Python is in worker.js; it starts with the first line sent,
// so that whoever only reads the page does not load it.

const part = (name) => document.getElementById(`playground-${name}`);
const [menu, lesson, lines, send, renew, status, answers, picture] = [
  "menu", "lesson", "lines", "send", "renew", "status", "answers", "picture",
].map(part);

let worker = null; // Python, once it was needed
let fresh = true; // whether the next line opens a connection

// ## Asking Python, one question at a time

function ask(question) {
  worker ??= new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => (data.broken ? reject(data.broken) : resolve(JSON.parse(data.answer)));
    worker.onerror = (event) => reject(event.message || "it could not be loaded");
    worker.postMessage({ question: JSON.stringify(question) });
  });
}

async function talk() {
  const typed = lines.value.split("\n").filter((line) => line.trim());
  if (send.getAttribute("aria-disabled") || !typed.length) return;
  send.setAttribute("aria-disabled", "true");
  status.textContent = worker ? "The server thinks…" : `Python starts (${send.dataset.size})…`;
  try {
    const { exchanges, picture: drawn } = await ask({ lines: typed, fresh });
    fresh = false;
    show(exchanges, drawn);
  } catch (error) {
    worker?.terminate();
    worker = null;
    fresh = true;
    status.textContent = `Python stopped: ${error}. The next line starts it again, on a new connection.`;
  }
  send.removeAttribute("aria-disabled");
}

// ## Showing what came back

function element(kind, text, className = "") {
  const node = document.createElement(kind);
  node.textContent = text;
  node.className = className;
  return node;
}

function show(exchanges, drawn) {
  const { outcome, checks } = exchanges.at(-1);
  const failed = exchanges.flatMap((one) => one.checks).filter(([holds]) => !holds).length;
  status.textContent = `Came back: ${outcome}. ` + (failed ? `${failed} of the checks failed!` : "All checks hold.");
  status.dataset.outcome = outcome;
  answers.replaceChildren(...exchanges.flatMap(exchange));
  picture.innerHTML = drawn; // Python has escaped what it holds
  part("result").hidden = false;
}

function exchange({ sent, said, outcome, model, stderr, checks }, index, { length }) {
  const title = length > 1 ? `Line ${index + 1} of ${length}: ${outcome}` : `One line: ${outcome}`;
  const nodes = [element("h3", title), labelled("You sent", sent, "sent")];
  for (const line of said) nodes.push(labelled("The server answered", line, "said"), indented(line));
  if (model) nodes.push(labelled("What the model reads", model, "model"));
  if (stderr) nodes.push(labelled("What the operator reads (stderr)", stderr, "stderr"));
  const list = element("ul", "", "checks");
  list.append(...checks.map(([holds, text]) => element("li", `${holds ? "✓" : "✗ wrong:"} ${text}`, holds ? "" : "wrong")));
  return [...nodes, list];
}

function labelled(title, text, className) {
  const box = element("figure", "", className);
  box.append(element("figcaption", title), element("pre", text));
  return box;
}

function indented(line) {
  const box = element("details", "");
  box.append(element("summary", "The same, indented"), element("pre", JSON.stringify(JSON.parse(line), null, 2)));
  return box;
}

// ## What the reader does

function choose() {
  const { lines: text, lesson: said } = menu.selectedOptions[0].dataset;
  lines.value = JSON.parse(text).join("\n");
  lesson.textContent = said;
  begin();
}

function begin() {
  fresh = true;
  status.textContent = "The next line opens a new connection.";
  delete status.dataset.outcome;
  part("result").hidden = true;
}

lines.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  talk();
});
menu.addEventListener("change", choose);
send.addEventListener("click", talk);
renew.addEventListener("click", begin);
choose();
