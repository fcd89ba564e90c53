// A page that was opened as a file may start no worker, which the theme's search needs. There, a hidden frame runs the
// worker's script instead. The theme would load such a stand-in from a network; this one is part of the site.
(() => {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const load = (source) =>
        new Promise((loaded, failed) => {
          const script = inside.document.createElement("script");
          script.src = source;
          script.onload = loaded;
          script.onerror = failed;
          inside.document.body.appendChild(script);
        });
      inside.importScripts = (...sources) => sources.reduce((done, one) => done.then(() => load(one)), Promise.resolve());
      this.ready = load(String(address));
    }

    postMessage(data) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data: structuredClone(data) }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
