# Compile through ccache and link with lld where they are installed: both only save time.
find_program(SHARDPROOF_CCACHE ccache)
if(SHARDPROOF_CCACHE)
  # The precompiled header is part of the key through its contents, not its time stamp.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${SHARDPROOF_CCACHE})
  add_compile_options(-fpch-preprocess)
endif()
find_program(SHARDPROOF_LLD ld.lld)
if(SHARDPROOF_LLD)
  add_link_options(-fuse-ld=lld)
endif()
