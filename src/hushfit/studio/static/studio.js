// Copies a text, ticks boxes. Everything else works without scripts.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy], button[data-tick]");
  if (!button) return;
  if (button.dataset.copy) {
    navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  } else {
    document.querySelectorAll(`input[name$=".${button.dataset.tick}"]`).forEach((box) => { box.checked = true; });
  }
});
