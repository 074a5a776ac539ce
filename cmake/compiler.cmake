# Language level, warnings and sanitizers that hold for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(MEMDECAY_CCACHE ccache)
if(MEMDECAY_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${MEMDECAY_CCACHE})
  # What ccache asks for before it keeps anything that was compiled with precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${MEMDECAY_CCACHE})
endif()

add_compile_options(
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-align
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast>
  $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>)
if(MEMDECAY_WERROR)
  add_compile_options(-Werror)
endif()

# Results must not depend on the compiler's liking for fused multiply-add: kernels say it where they want it.
add_compile_options(-ffp-contract=off)

if(MEMDECAY_SANITIZE)
  add_compile_options(-fsanitize=${MEMDECAY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MEMDECAY_SANITIZE})
endif()
if(MEMDECAY_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
