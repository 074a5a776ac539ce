# check_headers: compiles every header of src/ and include/ alone, so that each includes what it needs.
#
# A header that its own source or test includes before anything else is shown by that file, in the builds without precompiled headers.
# For each other one there is a generated source in an object library that only `ninja check_headers` builds. The files
# src/kernels/target_*.h open and close a region of another file, and those of generic/, avx2/ and avx512/ but table.h are
# included inside such a region, after the standard headers that they use: neither are headers in this sense.

# Sets `result` to whether HEADER is the first that its source or its test includes.
function(memdecay_comes_first header result)
  set(${result} FALSE PARENT_SCOPE)
  string(REGEX REPLACE "\\.h$" "" stem ${header})
  foreach(source ${stem}.cc ${stem}_test.cc)
    set(first "")
    if(EXISTS ${PROJECT_SOURCE_DIR}/src/${source})
      file(STRINGS ${PROJECT_SOURCE_DIR}/src/${source} first REGEX "^ *# *include" LIMIT_COUNT 1)
    endif()
    if(first STREQUAL "#include \"${header}\"")
      set(${result} TRUE PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

function(memdecay_check_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/*.h)
  file(GLOB_RECURSE installed CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.h)
  list(FILTER headers EXCLUDE REGEX "(^|/)target_[a-z0-9_]+\\.h$")
  list(FILTER headers EXCLUDE REGEX "^kernels/(generic/.*|avx[0-9]+/(lanes|matmul_[a-z]+))\\.h$")
  set(sources "")
  foreach(header ${headers} ${installed})
    memdecay_comes_first(${header} shown)
    if(shown)
      continue()
    endif()
    set(source ${PROJECT_BINARY_DIR}/check_headers/${header}.cc)
    set(content "#include \"${header}\"\n#include \"${header}\"\n")
    set(before "")
    if(EXISTS ${source})
      file(READ ${source} before)
    endif()
    if(NOT content STREQUAL before)
      file(WRITE ${source} ${content})
    endif()
    list(APPEND sources ${source})
  endforeach()
  add_library(check_headers OBJECT EXCLUDE_FROM_ALL ${sources})
  target_include_directories(check_headers PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(check_headers PRIVATE
    fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11 PkgConfig::PCRE2 OpenSSL::Crypto Threads::Threads)
endfunction()
