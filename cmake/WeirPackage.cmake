# The CMake package: find_package(weir COMPONENTS cache), then link weir::cache.
#
# A component is a library. What it stands on is read from the links of its target, and what that needs to be found is
# what found it here; so nothing is listed twice, and whoever links one library needs no other's packages.

# weir_find_package(NAME [VERSION] [COMPONENTS c..]): find_package, required, of something that a library links. Its
# targets must be called NAME::something. The CMake package will find it in the same way.
macro(weir_find_package NAME)
  find_package(${NAME} ${ARGN} REQUIRED)
  string(REPLACE ";" " " weir_request "${NAME};${ARGN}")
  string(STRIP "${weir_request}" weir_request)
  weir_remember_how_to_find("${NAME}" "${weir_request}" "${NAME}_FOUND"
    "  find_package(${weir_request} \${weir_quietly})\n")
endmacro()

# weir_find_module(NAME MODULE): the same for a module of pkg-config, as PkgConfig::NAME.
macro(weir_find_module NAME MODULE)
  pkg_check_modules(${NAME} REQUIRED IMPORTED_TARGET GLOBAL ${MODULE})
  weir_remember_how_to_find("PkgConfig::${NAME}" "${MODULE}" "${NAME}_FOUND"
    "  find_package(PkgConfig \${weir_quietly})\n  if(PkgConfig_FOUND)\n    pkg_check_modules(${NAME} \${weir_quietly} IMPORTED_TARGET GLOBAL ${MODULE})\n  endif()\n")
endmacro()

# KEY: a target, or what its name has before the colons. TITLE: for people. FOUND: the variable that tells.
function(weir_remember_how_to_find KEY TITLE FOUND CODE)
  set_property(GLOBAL PROPERTY "WEIR_FIND_${KEY}"
    "${CODE}  if(NOT ${FOUND})\n    list(APPEND weir_lacking \"${TITLE}\")\n  endif()\n")
endfunction()

# What the target links, taken apart: the components of the package, and the code that finds the others.
function(weir_read_links TARGET COMPONENTS FINDING)
  get_property(libraries GLOBAL PROPERTY WEIR_LIBRARIES)
  get_target_property(links ${TARGET} INTERFACE_LINK_LIBRARIES)
  set(components)
  set(finding)
  foreach(link IN LISTS links)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" link "${link}")
    if(link MATCHES "^\\$<BUILD_INTERFACE:")
      continue()
    endif()
    if(link IN_LIST libraries)
      get_target_property(name ${link} EXPORT_NAME)
      list(APPEND components ${name})
      continue()
    endif()
    string(REGEX REPLACE "::.*" "" package "${link}")
    get_property(code GLOBAL PROPERTY "WEIR_FIND_${link}")
    if(NOT code)
      get_property(code GLOBAL PROPERTY "WEIR_FIND_${package}")
    endif()
    if(NOT code)
      message(FATAL_ERROR "${TARGET} links ${link}, which the CMake package couldn't find: use weir_find_package or weir_find_module")
    endif()
    list(APPEND finding "${code}")
  endforeach()
  list(REMOVE_DUPLICATES finding)
  list(JOIN finding "" finding)
  set(${COMPONENTS} ${components} PARENT_SCOPE)
  set(${FINDING} "${finding}" PARENT_SCOPE)
endfunction()

# Installs all libraries, as the component `library` of the installation, with their headers and the package.
function(weir_install_package)
  include(CMakePackageConfigHelpers)
  get_property(libraries GLOBAL PROPERTY WEIR_LIBRARIES)
  set(where "${CMAKE_INSTALL_LIBDIR}/cmake/weir")
  foreach(library IN LISTS libraries)
    get_target_property(name ${library} EXPORT_NAME)
    weir_read_links(${library} needs finding)
    list(JOIN needs " " needs)
    string(APPEND WEIR_NEEDS "set(weir_needs_${name} ${needs})\n")
    string(APPEND WEIR_LOADING "if(\"${name}\" IN_LIST weir_wanted)\n${finding}  weir_load(${name})\nendif()\n")
    list(APPEND WEIR_COMPONENTS ${name})
    install(TARGETS ${library} EXPORT weirTargets-${name} ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library)
    install(EXPORT weirTargets-${name} NAMESPACE weir:: FILE weirTargets-${name}.cmake DESTINATION "${where}" COMPONENT library)
  endforeach()
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/weir" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT library FILES_MATCHING PATTERN "*.h"
    PATTERN "testing" EXCLUDE PATTERN "*_fixture.h" EXCLUDE PATTERN "test_*.h" EXCLUDE PATTERN "raw_client.h" EXCLUDE)
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/weirConfig.cmake.in" "${PROJECT_BINARY_DIR}/weirConfig.cmake"
    INSTALL_DESTINATION "${where}")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/weirConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/weirConfig.cmake" "${PROJECT_BINARY_DIR}/weirConfigVersion.cmake"
    DESTINATION "${where}" COMPONENT library)
endfunction()
