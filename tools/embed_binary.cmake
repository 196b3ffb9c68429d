# Writes a file's bytes into a C++ file as a function that returns them.
# cmake -DIN=... -DHEADER=host/python/traced_run.h -DFUNCTION=fit_no_accelerator -DOUT=... -P tools/embed_binary.cmake
get_filename_component(name "${IN}" NAME)
file(READ "${IN}" hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${hex}")
# Four bytes a line: a literal that is all one line is no text that an editor opens.
string(REGEX REPLACE "((\\\\x[0-9a-f][0-9a-f])(\\\\x[0-9a-f][0-9a-f])?(\\\\x[0-9a-f][0-9a-f])?(\\\\x[0-9a-f][0-9a-f])?)" "    \"\\1\"\n" bytes "${bytes}")
file(WRITE "${OUT}" "// Made from ${name} by tools/embed_binary.cmake. Do not edit.\n#include \"${HEADER}\"\n\n"
  "namespace cufit::host {\n\nstd::string_view ${FUNCTION}() {\n  return {\n${bytes}      ,\n      ${size}};\n}\n\n}  // namespace cufit::host\n")
