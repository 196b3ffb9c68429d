# Joins a Python package of python/ into one text that runs as `python -c TEXT`, and writes it into a C++ function: no file is
# needed to start it. MODULES are loaded in this order; the last has `run`.
# cmake -DROOT=python -DPACKAGE=cufit_together "-DMODULES=processes;work;main" -DHEADER=host/python/together_run.h
# -DFUNCTION=together_program -DTEXT=cufit_together.py -DOUT=cufit_together.cc -P tools/embed_python_text.cmake
set(text "import sys, types\n\n\ndef module(name, source):\n    made = sys.modules[name] = types.ModuleType(name)\n")
string(APPEND text "    made.__package__ = \"${PACKAGE}\"\n    exec(compile(source, name, \"exec\"), made.__dict__)\n\n\nmodule(\"${PACKAGE}\", \"\")\n")
foreach(name IN LISTS MODULES)
  file(READ "${ROOT}/${PACKAGE}/${name}.py" source)
  string(FIND "${source}" "'''" quotes)
  if(NOT quotes EQUAL -1)
    message(FATAL_ERROR "python/${PACKAGE}/${name}.py holds ''', which ends its place in the joined text")
  endif()
  string(APPEND text "module(\"${PACKAGE}.${name}\", r'''${source}''')\n")
endforeach()
string(APPEND text "sys.modules[\"${PACKAGE}.main\"].run()\n")
file(WRITE "${TEXT}" "${text}")
string(FIND "${text}" ")python\"" end)
if(NOT end EQUAL -1)
  message(FATAL_ERROR "python/${PACKAGE} holds the end of a raw string of C++")
endif()
file(WRITE "${OUT}" "// Made from python/${PACKAGE} by tools/embed_python_text.cmake. Do not edit.\n#include \"${HEADER}\"\n\n"
  "namespace cufit::host {\n\nconst char* ${FUNCTION}() {\n  return R\"python(${text})python\";\n}\n\n}  // namespace cufit::host\n")
