# fathom::report (no torch): figures and pages, with Vega and the page's own files compiled in.

find_path(FATHOM_VEGA_DIR vega-view.min.js PATHS /usr/share/javascript/vega
  DOC "Folder with Vega 5's modules, vega-*.min.js (Debian: libjs-vega)")
if(NOT FATHOM_VEGA_DIR)
  message(FATAL_ERROR "Vega's modules (vega-view.min.js and others) were not found; install Debian's libjs-vega or set FATHOM_VEGA_DIR")
endif()

# In any order: each asks for what it needs by name.
set(vega_modules util canvas time format loader dataflow scale scenegraph expression event-selector statistics selection
  functions runtime view parser encode transforms view-transforms)
set(report_assets ${fathom_source_root}/report/assets)

file(READ ${report_assets}/vega_head.js vega_js)
foreach(module IN LISTS vega_modules)
  file(READ ${FATHOM_VEGA_DIR}/vega-${module}.min.js content)
  string(REGEX REPLACE "\n//# sourceMappingURL=[^\n]*" "" content "${content}")
  string(REPLACE "selection" "selections" name ${module})
  string(APPEND vega_js "modules[\"vega-${name}\"] = function (exports, require, module) {\n${content}\n};\n")
endforeach()
file(READ ${report_assets}/vega_tail.js content)
string(APPEND vega_js "${content}")

set(assets vega_js)
foreach(asset drawing.js page.js page.css)
  string(REPLACE "." "_" name ${asset})
  file(READ ${report_assets}/${asset} ${name})
  list(APPEND assets ${name})
endforeach()
include(Embed)
fathom_embed(${PROJECT_BINARY_DIR}/report/assets.cpp fathom/report/assets.hpp fathom::report::assets ${assets})

file(GLOB asset_files CONFIGURE_DEPENDS ${report_assets}/*)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${asset_files})

fathom_library(fathom_report "${report_sources};${PROJECT_BINARY_DIR}/report/assets.cpp")
add_library(fathom::report ALIAS fathom_report)
set_target_properties(fathom_report PROPERTIES EXPORT_NAME report)
target_link_libraries(fathom_report PUBLIC fathom_runtime PRIVATE ZLIB::ZLIB)
