# Texts as functions of a C++ source file, byte by byte: nothing in them is taken for a variable.

# fathom_embed(FILE HEADER NAMESPACE VARIABLE...): std::string_view VARIABLE() returns the variable's content.
function(fathom_embed file header namespace)
  get_filename_component(writer ${CMAKE_CURRENT_FUNCTION_LIST_FILE} NAME)
  set(source "// Written by cmake/${writer}.\n#include \"${header}\"\n\nnamespace ${namespace} {\n\n")
  foreach(name IN LISTS ARGN)
    string(APPEND source "std::string_view ${name}() {\n  return R\"__asset__(${${name}})__asset__\";\n}\n\n")
  endforeach()
  string(APPEND source "}  // namespace ${namespace}\n")
  set(written "")
  if(EXISTS ${file})
    file(READ ${file} written)
  endif()
  if(NOT written STREQUAL source)  # the same content again would be compiled again
    file(WRITE ${file} "${source}")
  endif()
endfunction()
