/* Light or dark: as the reader's system has it, until the reader says otherwise. */

import type { Store, Theme } from "./store.ts";

const KEY = "gradviz-theme";

/** Put the theme on, and again whenever the reader or the system wants another one. */
export function followTheme(store: Store, signal: AbortSignal): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  function wear() {
    const { theme } = store.get();
    const worn = theme === "auto" ? (system.matches ? "dark" : "light") : theme;
    document.documentElement.dataset.theme = worn;
    document.dispatchEvent(new Event("themechange"));
  }
  if (store.get().theme === "auto") store.set({ theme: remembered() });
  wear();
  store.subscribe(({ theme }) => {
    remember(theme);
    wear();
  }, "theme");
  system.addEventListener("change", wear, { signal });
  matchMedia("print").addEventListener("change", wear, { signal });
}

/** The other one than is seen now. */
export function switchTheme(store: Store): void {
  const isDark = document.documentElement.dataset.theme === "dark";
  store.set({ theme: isDark ? "light" : "dark" });
}

function remembered(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "auto";
  } catch {
    return "auto"; // a browser may refuse to remember anything for a file
  }
}

function remember(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // As above: then the next page begins as the system has it.
  }
}
