# memdecay_precompile(TARGET library|test): lets TARGET read the headers that most files include from one precompiled file.
#
# Only where MEMDECAY_PRECOMPILE is on: the builds with clang that have tests, of which headers are a third of the time. The builds with g++ 12,
# which takes precompiled libstdc++ for the program's own code and warns of it, and for release go without: a file that forgets an include
# fails there.
option(MEMDECAY_PRECOMPILE "Precompile the headers that most files include" OFF)

set(MEMDECAY_COMMON_HEADERS
  <algorithm> <array> <bit> <charconv> <cmath> <cstddef> <cstdint> <cstdio> <cstring> <filesystem> <fstream> <functional> <limits>
  <map> <memory> <numeric> <optional> <random> <set> <span> <string> <string_view> <unordered_map> <utility> <vector>
  <fmt/format.h> <nlohmann/json.hpp>)

# Without the time of its making in it, the precompiled file of an unchanged tree is the same file to ccache.
if(MEMDECAY_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Xclang> $<$<COMPILE_LANGUAGE:CXX>:-fno-pch-timestamp>)
endif()

function(memdecay_precompile target kind)
  if(NOT MEMDECAY_PRECOMPILE)
    return()
  endif()
  if(NOT TARGET memdecay_precompiled_${kind})
    set(source ${PROJECT_BINARY_DIR}/precompiled/${kind}.cc)
    if(kind STREQUAL "test")
      file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
      add_executable(memdecay_precompiled_test ${source})
      target_link_libraries(memdecay_precompiled_test PRIVATE GTest::gtest GTest::gmock)
      set(further <gtest/gtest.h> <gmock/gmock.h>)
    else()
      file(CONFIGURE OUTPUT ${source} CONTENT "\n")
      add_library(memdecay_precompiled_library STATIC ${source})
    endif()
    target_link_libraries(memdecay_precompiled_${kind} PRIVATE fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
    target_precompile_headers(memdecay_precompiled_${kind} PRIVATE ${MEMDECAY_COMMON_HEADERS} ${further})
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)
  target_precompile_headers(${target} REUSE_FROM memdecay_precompiled_${kind})
endfunction()
