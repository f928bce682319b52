// A list that holds only the rows in sight: thousands of entries cost what a screenful costs.

import { h, newId } from "./dom.js";

const MARGIN = 8; // rows above and below those in sight
export const MAX_ROWS = 150;

export class VirtualList {
  constructor({ label, rowHeight, render, onselect, onopen, empty, stamp }) {
    Object.assign(this, { rowHeight, render, onselect, onopen, stamp, items: [], rows: new Map(), index: -1, prefix: newId("row") });
    this.empty = h("p.empty", null, empty ?? "");
    this.spacer = h("div.spacer", { role: "presentation" });
    this.box = h("div.vlist", {
      role: "listbox", tabindex: "0", "aria-label": label,
      onscroll: () => this.later(), onkeydown: (event) => this.key(event),
    }, this.spacer);
    this.element = h("div.vbox", null, this.empty, this.box);
    // What is shown about a row can take the place in which the row was.
    new ResizeObserver(() => {
      if (this.index >= 0) this.reveal(this.index);
      this.later();
    }).observe(this.box);
  }

  set(items, keepIndex) {
    this.items = items;
    if (!keepIndex) this.index = -1;
    this.empty.hidden = items.length > 0;
    this.box.hidden = items.length === 0;
    this.draw();
  }

  later() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const height = this.box.clientHeight || 400;
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.rowHeight) - MARGIN);
    const shown = Math.min(Math.ceil(height / this.rowHeight) + 2 * MARGIN, MAX_ROWS);
    const last = Math.min(this.items.length, first + shown);
    this.spacer.style.height = `${this.items.length * this.rowHeight}px`;
    for (const [index, row] of this.rows) {
      const stays = index >= first && index < last && row.item === this.items[index] && row.stamp === this.stamp?.(row.item);
      if (stays) continue;
      row.element.remove();
      this.rows.delete(index);
    }
    // Rows in sight stay the same elements, so that a click is not lost while the list grows.
    for (let index = first; index < last; index++) {
      const item = this.items[index];
      if (!this.rows.has(index)) {
        const element = h("div.row", {
          role: "option", id: this.prefix + index, style: { transform: `translateY(${index * this.rowHeight}px)`, height: `${this.rowHeight}px` },
          onclick: () => this.select(index, true),
        }, this.render(item, index));
        this.rows.set(index, { item, element, stamp: this.stamp?.(item) });
        this.spacer.append(element);
      }
      const { element } = this.rows.get(index);
      element.setAttribute("aria-selected", String(index === this.index));
      element.setAttribute("aria-setsize", this.items.length);
      element.setAttribute("aria-posinset", index + 1);
    }
    const active = this.index >= first && this.index < last ? this.prefix + this.index : null;
    if (active) this.box.setAttribute("aria-activedescendant", active);
    else this.box.removeAttribute("aria-activedescendant");
  }

  select(index, open) {
    if (index < 0 || index >= this.items.length) return;
    this.index = index;
    this.reveal(index);
    this.draw();
    this.onselect?.(this.items[index], index);
    if (open) this.onopen?.(this.items[index], index);
  }

  reveal(index) {
    const top = index * this.rowHeight;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (top + this.rowHeight > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + this.rowHeight - this.box.clientHeight;
    }
  }

  scrollToEnd() {
    this.box.scrollTop = this.items.length * this.rowHeight;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.rowHeight) - 1);
    const last = this.items.length - 1;
    const target = {
      ArrowDown: this.index + 1, ArrowUp: Math.max(0, this.index - 1), PageDown: Math.min(last, this.index + page),
      PageUp: Math.max(0, this.index - page), Home: 0, End: last,
    }[event.key];
    if (target !== undefined) {
      event.preventDefault();
      this.select(Math.min(target, last));
    } else if (event.key === "Enter" && this.index >= 0) {
      event.preventDefault();
      this.onopen?.(this.items[this.index], this.index);
    }
  }
}
