// Looks once a second whether there is more in a file than this page shows, and has the
// page show that instead, as long as the reader wants to follow the recording.
const live = () => document.getElementById("live");

let isHeld = false;
for (const name of ["pointerdown", "pointermove", "pointerup", "pointercancel"])
  addEventListener(name, ({ buttons }) => (isHeld = buttons !== 0), true);

// Whoever replays a pass, drags something, or is about to choose or to write something,
// keeps what is shown.
function isBusy() {
  const { activeElement } = document;
  return (
    isHeld ||
    /[#&]moment=/.test(location.hash) ||
    document.querySelector("dialog[open]") !== null ||
    activeElement?.closest("#page :is(input, select)") != null
  );
}

const follows = () => (document.getElementById("follow")?.checked ?? true) && !isBusy();

// Fetches what is new of a page, the bar above it and the data if these are others, and
// puts that in place.
async function swap() {
  const { more, shown } = live().dataset;
  if (!more) return location.reload(); // it waits for the first pass
  const asked = new URLSearchParams(location.search);
  asked.set("shown", shown);
  const answer = await fetch(`${more}?${asked}`);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  const { bar, data } = await answer.json();
  if (!bar) return location.reload();
  if (!follows()) return tellOfMore(); // the reader has begun something meanwhile
  const next = new DOMParser().parseFromString(bar, "text/html").getElementById("bar");
  const before = document.getElementById("bar");
  const focused = before.contains(document.activeElement) && document.activeElement;
  before.replaceWith(document.adoptNode(next));
  if (focused)
    [...next.querySelectorAll("a, input")]
      .find((one) => one.id === focused.id && one.textContent === focused.textContent)
      ?.focus();
  if (data === null) return;
  document.dispatchEvent(new CustomEvent("gradviz-data", { detail: data }));
}

function tellOfMore() {
  live().firstChild.data = "more has been recorded ";
}

async function look() {
  const bar = live();
  const begin = performance.now();
  try {
    const answer = await fetch(bar.dataset.state);
    const state = answer.ok ? await answer.json() : undefined;
    if (!state) bar.firstChild.data = "the trace is not there any more";
    else if (state.edition !== bar.dataset.edition) {
      if (follows()) await swap();
      else tellOfMore();
    }
  } catch (error) {
    const hasEnded = error instanceof TypeError;
    bar.firstChild.data = hasEnded ? "the server has ended " : `${error.message} `;
    if (hasEnded) return;
  }
  // What takes a server long is not asked for all the time.
  const took = performance.now() - begin;
  if (live()) setTimeout(look, Math.max(1000, 2 * took));
}

setTimeout(look, 1000);
