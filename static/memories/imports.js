// The frame's own script would write the name of a chosen file into the next text field, which asks for an end user.
for (const input of document.querySelectorAll("input[type=file]")) {
  input.hasChangeListener = true;
}
