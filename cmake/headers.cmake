# check_headers: compiles every header of src/ and include/ alone, so that each includes what it needs.
#
# One generated source per header in an object library that only `ninja check_headers` builds. The files
# src/kernels/target_*.h open and close a region of another file, and those of generic/, avx2/ and avx512/ but table.h are
# included inside such a region, after the standard headers that they use: neither are headers in this sense.
function(memdecay_check_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/*.h)
  file(GLOB_RECURSE installed CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/*.h)
  list(FILTER headers EXCLUDE REGEX "(^|/)target_[a-z0-9_]+\\.h$")
  list(FILTER headers EXCLUDE REGEX "^kernels/(generic/.*|avx[0-9]+/(lanes|matmul_[a-z]+))\\.h$")
  set(sources "")
  foreach(header ${headers} ${installed})
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
