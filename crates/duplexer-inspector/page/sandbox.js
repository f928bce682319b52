// The frame between host and view, on an origin of its own. It passes messages on and checks who sent them.
// The view has no origin at all: its own policy and the attribute `sandbox` both say so.

let host = null; // origin of the page around this one, learned from its first message
let frame = null;

const toHost = (message) => parent.postMessage(message, host ?? "*");

addEventListener("message", (event) => {
  const message = event.data;
  if (event.source === parent) {
    if (host !== null && event.origin !== host) return;
    if (message?.method === "ui/notifications/sandbox-resource-ready") {
      if (frame) return;
      host = event.origin;
      frame = document.createElement("iframe");
      frame.title = "View";
      frame.setAttribute("sandbox", "allow-scripts allow-forms");
      if (message.params.allow) frame.setAttribute("allow", message.params.allow);
      frame.referrerPolicy = "no-referrer";
      frame.src = `/view/${encodeURIComponent(message.params.view)}`;
      document.body.append(frame);
    } else frame?.contentWindow?.postMessage(message, "*");
  } else if (frame && event.source === frame.contentWindow) {
    const method = typeof message === "object" && message !== null ? message.method : undefined;
    // These names are this frame's own.
    if (typeof method === "string" && (method.startsWith("ui/notifications/sandbox-") || method.startsWith("sandbox/"))) return;
    toHost(message);
  }
});

// A view that navigates its frame elsewhere violates the policy of this page.
addEventListener("securitypolicyviolation", (event) => {
  toHost({ jsonrpc: "2.0", method: "sandbox/blocked", params: { uri: event.blockedURI, directive: event.effectiveDirective } });
});

toHost({ jsonrpc: "2.0", method: "ui/notifications/sandbox-proxy-ready", params: {} });
