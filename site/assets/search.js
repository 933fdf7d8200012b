// "-32602" is an error code and "--trace" an option; the search engine would take the minus for
// "pages without", and colons and stars for orders of their own.
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...more) {
  if (typeof message?.data === "string")
    message = { ...message, data: message.data.replace(/(^|\s)[-+]+(?=\S)/g, "$1").replace(/[:~^*]/g, " ") };
  return post.call(this, message, ...more);
};
