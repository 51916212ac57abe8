# The few shapes that every target of the project has.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

find_program(WEIR_CCACHE ccache)
if(WEIR_CCACHE)
  # Precompiled headers need these two of ccache's promises loosened; both are safe for them.
  set(WEIR_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime" "${WEIR_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${WEIR_LAUNCHER}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${WEIR_LAUNCHER}")
endif()

weir_find_package(Threads)
find_package(PkgConfig REQUIRED)

# Every library, for who installs them.
add_custom_target(weir_libraries)

add_library(weir_options INTERFACE)
target_compile_options(weir_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion
  -Wno-sign-conversion -fno-omit-frame-pointer
  -fPIC)  # libraries and programs alike, so that they share the precompiled header
if(WEIR_WERROR)
  target_compile_options(weir_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # -fpch-instantiate-templates: templates of the precompiled header are instantiated once, in it.
  target_compile_options(weir_options INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fpch-instantiate-templates>"
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
if(WEIR_SANITIZE)
  target_compile_options(weir_options INTERFACE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(weir_options INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()

set(WEIR_PLAIN_PCH <algorithm> <array> <atomic> <chrono> <cstdint> <functional> <memory> <mutex> <optional> <span>
  <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)

# weir_library(NAME [DEPENDS t..] [PRIVATE t..] [SOURCES s..] [PLAIN])
# A library weir_NAME (alias weir::NAME) of the folder's *.cc that are neither tests, fuzz targets nor benchmarks; PLAIN ones do
# without Boost. The folder's *_test.cc become one program, weir_NAME_test, unless TESTS lists them.
function(weir_library NAME)
  cmake_parse_arguments(ARG "PLAIN" "" "DEPENDS;PRIVATE;SOURCES;TESTS;TEST_DEPENDS" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS *.cc)
    list(FILTER ARG_SOURCES EXCLUDE REGEX "(_test|_bench|_fuzz)\\.cc$")
  endif()
  set(target weir_${NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_dependencies(weir_libraries ${target})
  add_library(weir::${NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${NAME})
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE} "$<BUILD_INTERFACE:weir_options>")
  weir_precompile(${target} "${ARG_PLAIN}")
  set_property(GLOBAL APPEND PROPERTY WEIR_LIBRARIES ${target})
  if(NOT ARG_TESTS)
    file(GLOB ARG_TESTS CONFIGURE_DEPENDS *_test.cc)
  endif()
  if(WEIR_TESTS AND ARG_TESTS)
    if(ARG_PLAIN)
      set(plain PLAIN)
    endif()
    weir_test(${NAME} ${plain} SOURCES ${ARG_TESTS} DEPENDS ${target} ${ARG_TEST_DEPENDS})
  endif()
endfunction()

function(weir_precompile LIBRARY PLAIN)
  if(PLAIN OR NOT TARGET weir_asio)
    target_precompile_headers(${LIBRARY} PRIVATE ${WEIR_PLAIN_PCH})
  elseif(NOT "${LIBRARY}" STREQUAL "weir_asio")
    target_precompile_headers(${LIBRARY} REUSE_FROM weir_asio)
  endif()
endfunction()

# weir_test(NAME SOURCES s.. [DEPENDS t..]): a GoogleTest program whose cases ctest runs side by side.
# Names of suites that end in Concurrency run under the thread sanitizer in .ci/run too.
function(weir_test NAME)
  cmake_parse_arguments(ARG "PLAIN" "" "SOURCES;DEPENDS" ${ARGN})
  find_package(GTest REQUIRED)
  set(target weir_${NAME}_test)
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main weir_options)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  weir_precompile(${target} "${ARG_PLAIN}")
  add_test(NAME ${NAME} COMMAND ${target} --gtest_brief=1 --gtest_random_seed=0 --gtest_shuffle=0)
  set_tests_properties(${NAME} PROPERTIES TIMEOUT 300 LABELS unit)
  set_property(GLOBAL APPEND PROPERTY WEIR_UNIT_TESTS ${target})
endfunction()

# weir_fuzz(NAME SOURCES s.. [DEPENDS t..] [RUNS n] [CORPUS dir]): a libFuzzer program of the fuzz target and of what it
# fuzzes, which is compiled into it; ctest gives it n inputs, beginning with the files of the corpus. Only with Clang, and
# not beside the thread sanitizer.
function(weir_fuzz NAME)
  cmake_parse_arguments(ARG "" "RUNS;CORPUS" "SOURCES;DEPENDS" ${ARGN})
  if(NOT WEIR_TESTS OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR WEIR_SANITIZE MATCHES "thread")
    return()
  endif()
  set(target weir_${NAME}_fuzz)
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS} weir_options)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_options(${target} PRIVATE -fsanitize=fuzzer,address -fno-sanitize-recover=all)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer,address)
  if(ARG_CORPUS)
    # By name: into a folder that it is given, libFuzzer would write what it finds.
    file(GLOB inputs CONFIGURE_DEPENDS "${ARG_CORPUS}/*")
    list(JOIN inputs "," inputs)
    set(corpus "-seed_inputs=${inputs}")
  endif()
  # Each time from another seed, which it prints.
  add_test(NAME ${NAME}_fuzz COMMAND ${target} -runs=${ARG_RUNS} -max_len=4096 ${corpus})
  set_tests_properties(${NAME}_fuzz PROPERTIES TIMEOUT 300 LABELS unit)
  set_property(GLOBAL APPEND PROPERTY WEIR_UNIT_TESTS ${target})
endfunction()
