// "-32602" is an error code; the search engine would take the minus for "pages without 32602".
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...more) {
  if (typeof message?.data === "string")
    message = { ...message, data: message.data.replace(/(^|\s)-(?=\d)/g, "$1") };
  return post.call(this, message, ...more);
};
