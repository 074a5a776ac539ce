# memdecay_embed(TARGET FILE SYMBOL)
#
# Compiles the bytes of FILE into TARGET as `extern const char SYMBOL[]` with a NUL behind them and
# `extern const std::size_t SYMBOL_bytes` without it, both in namespace memdecay; declare them where they are
# used. FILE is taken from the source tree; when it changes, the next build embeds it anew.
function(memdecay_embed target file symbol)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR} NORMALIZE)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${output} -DSYMBOL=${symbol}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake
    COMMENT "Embedding ${symbol}"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
