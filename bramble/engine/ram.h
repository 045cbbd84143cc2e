/* Generated from shared/game/ram/ram.tsv by `python -m shared.game.generate`: do not edit.
 *
 * Work RAM of the game. `RAM_HERE` is set in one C file, which then defines the variables; all others see them as
 * extern. Banked variables (bank 2, 3 or 7) are pointers: select the bank by SVBK (FF70) before use. Bank 1 is the
 * one that is selected all the time.
 */
#pragma once
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned int u16;
typedef unsigned long u32;

#ifdef RAM_HERE
#define RAM(addr, type, name) type __at(addr) name
#define RAMV(addr, type, name, n) type __at(addr) name[n]
#else
#define RAM(addr, type, name) extern type name
#define RAMV(addr, type, name, n) extern type name[n]
#endif

/* One slot of the object table: 64 bytes. */
typedef struct {
    u8 enabled; /* 0 free; low bits 1 live, 2 left over from the last room, 3 persists */
    u8 id; /* kind of object */
    u8 subid; /* variant */
    u8 var03; /* variant */
    u8 state; /* 0 not yet set up */
    u8 substate; /* step within the state */
    u8 counter1; /* frames */
    u8 counter2; /* frames */
    u8 direction; /* 0 up, 1 right, 2 down, 3 left */
    u8 angle; /* 0-1f clockwise from up */
    u8 y_fraction; /* 256th of a pixel */
    u8 y; /* row in the room */
    u8 x_fraction; /* 256th of a pixel */
    u8 x; /* column in the room */
    u8 z_fraction; /* 256th of a pixel */
    i8 z; /* height, negative is up */
    u8 speed; /* speed code */
    u8 pad_11[0x09];
    u8 visible; /* bit 7 drawn */
    u8 pad_1b[0x09];
    u8 collision_type; /* bit 7 can hit and be hit */
    u8 collision_mode; /* how it reacts to hits */
    u8 half_height; /* hit box */
    u8 half_width; /* hit box */
    i8 damage; /* to the hero, negative, eighths of a heart */
    u8 health; /* 0 while dying */
    u8 last_hit; /* bit 7 just hit */
    u8 invincibility; /* frames */
    u8 knockback_angle; /* direction */
    u8 knockback; /* frames */
    u8 stun; /* frames */
    u8 pad_2f[0x01];
    u8 treasure_id; /* of a treasure on the ground (people slots, id 60) */
    u8 pressed_a; /* bit 0 in the frame the hero talks to it */
    u8 pad_32[0x01];
    u8 treasure_taken; /* of a treasure: taking it sets room flag 20 */
    u8 pad_34[0x0B];
    u8 var3f; /* enemies: in water, hole or lava */
} Object;

RAM(0xC2E0, u8, thread0_state); /* enum; runs title, intro film and the game-over screen; 0 stopped */
RAM(0xC2E8, u8, thread1_state); /* enum; runs the game itself; 0 stopped */
RAM(0xC2F0, u8, thread2_state); /* enum; prints text boxes; 0 stopped */
RAM(0xC2F8, u8, thread3_state); /* enum; fades palettes; 0 stopped */
RAM(0xC2E6, u8, intro_stage); /* enum; 1 logos, 2 film, 3 title screen; only while thread 0 runs */
RAM(0xC2E7, u8, intro_var); /* enum; on the title screen 1 means it waits for START */
RAM(0xC2EE, u8, game_state); /* enum; 2 in play, 1 loading after a warp, 3 opening of a new file; still 2 on the game-over screen */
RAM(0xC2EF, u8, cutscene_index); /* enum; 0 room loading or scrolling, 1 normal play, 3-5 warp fade, 6 and more a scripted scene */
RAM(0xFF96, u8, hardware_type); /* enum; must be 1 (colour hardware) */
RAM(0xFF98, u8, active_file_slot); /* u8; save slot in use, 0-2 */
RAM(0xCBB3, u8, file_select_mode); /* enum; page of the file screen; shares its byte with other menus */
RAM(0xCBB4, u8, file_select_submode); /* enum; step within the page; shares its byte with other menus */
RAM(0xCBBC, u8, file_select_cursor); /* u8; row of the file screen */
RAM(0xCC01, u8, linked_game); /* bool; this file continues another game */
RAM(0xCC49, u8, active_group); /* enum; 0 overworld, 1-3 other maps and houses, 4-5 dungeons and caves, 6-7 side view */
RAM(0xCC4C, u8, active_room); /* u8; room number within its group; changes when a scroll begins */
RAM(0xCC4B, u8, loading_room); /* u8; room whose layout was unpacked last */
RAM(0xCC4D, u8, room_pack); /* u8; region of the overworld that shares one season */
RAM(0xCC61, u8, loading_room_pack); /* u8; region being entered */
RAM(0xCC4E, u8, season); /* enum; 0 spring, 1 summer, 2 autumn, 3 winter; keeps its value indoors */
RAM(0xCC4F, u8, active_collisions); /* enum; tile table in use: 0 overworld, 3 indoors, 4 dungeon, 5 side view */
RAM(0xCC50, u8, tileset_flags); /* bits; 01 outdoors, 04 indoors, 08 dungeon, 10 cave, 20 side view */
RAM(0xCC4A, u8, room_is_large); /* bool; 0 is 10x8 metatiles, 1 is 15x11 */
RAM(0xCD0A, u8, room_width_8px); /* u8; room width in tiles of 8 px */
RAM(0xCD0B, u8, room_height_8px); /* u8; room height in tiles of 8 px */
RAM(0xCC55, u8, dungeon_index); /* enum; ff when not in a dungeon */
RAM(0xCC56, u8, dungeon_map_position); /* u8; row*8+column on the dungeon map; only inside */
RAM(0xCC57, u8, dungeon_floor); /* u8; 0 is the lowest floor; only inside */
RAM(0xCC58, u8, dungeon_room_properties); /* bits; map data of the room: 01-08 exits, 10 key, 20 chest, 40 boss, 80 dark; never changes */
RAM(0xCC5C, u8, dungeon_num_floors); /* u8; floors of this dungeon */
RAM(0xCC5D, u8, dungeon_base_floor); /* u8; number of the lowest floor, for its name only */
#define dungeon_layout ((u8 *)0xDC00) /* bank 2; 256 bytes; room numbers on an 8x8 grid, one per floor, 0 none */
RAM(0xC63A, u8, minimap_group); /* enum; group shown on the map screen; stale indoors */
RAM(0xC63B, u8, minimap_room); /* u8; room shown on the map screen; stale indoors */
RAM(0xC63C, u8, minimap_dungeon_position); /* u8; last dungeon map position; stale outside */
RAM(0xC63D, u8, minimap_dungeon_floor); /* u8; last dungeon floor; stale outside */
RAM(0xCD00, u8, scroll_mode); /* bits; 1 play, 2 entering, 4 edge touched, 8 scrolling, bit 7 camera moves: a transition is (v & 0e) != 0 or (v & 0f) == 0 */
RAM(0xCD02, u8, transition_direction); /* enum; direction of the last or current scroll, bit 7 forced */
RAM(0xCD04, u8, transition_state); /* enum; 2 is idle, 5 scrolling */
RAM(0xCD15, u8, transition_delay); /* u8; frames of forced walk before an edge scroll */
RAM(0xCCAB, u8, disable_screen_transitions); /* bool; edges do not scroll */
RAM(0xCCAA, u8, disable_warp_tiles); /* bool; warp tiles do nothing */
RAM(0xC4AB, u8, palette_fade_mode); /* enum; nonzero while a fade freezes the game */
RAM(0xCC63, u8, warp_dest_group); /* bits; group a warp leads to, bit 7 room given directly */
RAM(0xCC64, u8, warp_dest_room); /* u8; room a warp leads to */
RAM(0xCC65, u8, warp_transition); /* bits; kind of warp in the low nibble, bit 7 arrival half */
RAM(0xCC66, u8, warp_dest_pos); /* yx_nibbles; arrival cell */
RAM(0xCC67, u8, warp_trigger); /* enum; write 1 to go where the three bytes above say */
RAM(0xCCA8, u8, entered_warp_pos); /* yx_nibbles; warp tile that stays dead until left, ff none */
RAM(0xFFA8, u16, camera_y); /* u16le; picture row of the room shown at the top */
RAM(0xFFAA, u16, camera_x); /* u16le; picture column of the room shown at the left */
RAM(0xCD08, u8, screen_offset_y); /* u8_px; shake of the picture */
RAM(0xCD09, u8, screen_offset_x); /* u8_px; shake of the picture */
RAM(0xCC51, u8, active_music); /* enum; music being played */
RAM(0xCC53, u8, lost_woods_counter_north); /* u8; steps of the northern maze done */
RAM(0xCC54, u8, lost_woods_counter_sword); /* u8; steps of the sword maze done */
RAM(0xCC3A, u8, maple_present); /* bool; the witch is in this room */
RAM(0xCC48, u8, link_object_index); /* u8; page of the object that moves: d0 on foot, d1 riding */
RAM(0xD000, u8, link_enabled); /* u8; 0 absent */
RAM(0xD001, u8, link_id); /* enum; 0 the hero, 2-7 transformed, 9 riding */
RAM(0xD004, u8, link_state); /* enum; 1 normal, 2 falling or drowning, 3 dying, 4 holds up an item, 8 scripted */
RAM(0xD005, u8, link_substate); /* enum; step within the state */
RAM(0xD008, u8, link_direction); /* enum; 0 up, 1 right, 2 down, 3 left */
RAM(0xD009, u8, link_angle); /* u8; movement, 0-1f clockwise from up, ff still */
RAM(0xD00B, u8, link_y); /* u8_px; centre of the body, row in the room */
RAM(0xD00D, u8, link_x); /* u8_px; centre of the body, column in the room */
RAM(0xD00F, i8, link_z); /* s8; height, negative is up */
RAM(0xD010, u8, link_speed); /* u8; speed code */
RAM(0xD024, u8, link_collision_type); /* bits; bit 7: can be hit */
RAM(0xD025, i8, link_damage_to_apply); /* s8; damage of a hit, consumed in the same frame */
RAM(0xD02B, u8, link_invincibility); /* u8; nonzero: cannot be hit */
RAM(0xD02C, u8, link_knockback_angle); /* u8; direction of being knocked back */
RAM(0xD02D, u8, link_knockback); /* u8; frames left of being knocked back */
RAM(0xD030, u8, link_anim_mode); /* enum; animation shown */
RAM(0xD033, u8, link_adjacent_walls); /* bits; two probes a side, bits 7-6 up, 5-4 down, 3-2 left, 1-0 right */
RAM(0xCC47, u8, link_input_angle); /* u8; direction held, ff none */
RAM(0xCC34, u8, link_death_trigger); /* u8; nonzero as soon as the hero dies; write 1 to die */
RAM(0xCC35, u8, game_over_trigger); /* u8; ff one frame before the game-over screen */
RAM(0xCC6A, u8, link_force_state); /* enum; state to enter next, 0 none */
RAM(0xCC6C, u8, link_state_parameter); /* u8; frames of a forced walk, kind of a fall */
RAM(0xCC77, u8, link_in_air); /* bits; low nibble nonzero while jumping */
RAM(0xCC78, u8, link_swimming); /* bits; low nibble nonzero in water, bit 7 diving */
RAM(0xCC75, u8, link_grab_state); /* enum; 0 free, 41 grabbing, c2 lifting, 83 holding */
RAM(0xCC76, u8, link_grab_state2); /* bits; weight of what is lifted, bits 4-6 */
RAM(0xCC83, u8, link_climbing); /* enum; ff on a ladder or vine */
RAM(0xCC80, u8, link_pushing_direction); /* enum; side being pushed against, ff none */
RAM(0xCC84, u8, push_counter); /* u8; counts down from 20 while pushing; at 0 the block moves or the door opens */
RAM(0xCC7B, u8, link_turning_disabled); /* bits; facing is locked */
RAM(0xCC7C, u8, link_immobilized); /* bits; nonzero: cannot walk */
RAM(0xCC7A, u8, link_using_item); /* bits; items being used */
RAM(0xCC89, u8, link_using_shield); /* enum; nonzero while the shield is up */
RAM(0xCC74, u8, sword_disabled); /* u8; frames without sword */
RAM(0xCC79, u8, magnet_glove_state); /* bits; bit 6 latched */
RAM(0xCC86, u16, pegasus_counter); /* u16le; frames of speed left */
RAM(0xCCF2, u8, link_shocked); /* enum; nonzero while shocked */
RAM(0xCCA7, u8, link_playing_instrument); /* enum; ff while playing */
RAM(0xCCB0, u8, link_riding_object); /* u8; page of the platform ridden, 0 none */
RAM(0xCCB3, u8, active_tile_pos); /* yx_nibbles; cell under the hero */
RAM(0xCCB4, u8, active_tile_index); /* u8; metatile under the hero */
RAM(0xCCB6, u8, active_tile_type); /* enum; 0 floor, 1 hole, 5 grass, 6 stairs, 7 water, d spike, 10 lava */
RAM(0xCCB5, u8, standing_tile_counter); /* u8; frames on this tile */
RAM(0xCC3D, u8, local_respawn_y); /* u8_px; where a fall puts the hero back */
RAM(0xCC3E, u8, local_respawn_x); /* u8_px; where a fall puts the hero back */
RAM(0xCC3F, u8, local_respawn_dir); /* enum; facing after a fall */
RAM(0xC62B, u8, death_respawn_group); /* enum; where the game goes on after death */
RAM(0xC62C, u8, death_respawn_room); /* u8; where the game goes on after death */
RAM(0xC62D, u8, death_respawn_season); /* enum; season after death */
RAM(0xC62E, u8, death_respawn_dir); /* enum; facing after death */
RAM(0xC62F, u8, death_respawn_y); /* u8_px; position after death */
RAM(0xC630, u8, death_respawn_x); /* u8_px; position after death */
RAM(0xD100, u8, companion_enabled); /* u8; 0 absent */
RAM(0xD101, u8, companion_id); /* enum; 0a cart, 0b-0d the three animals, 0e the witch */
RAM(0xD10B, u8, companion_y); /* u8_px; position when riding */
RAM(0xD10D, u8, companion_x); /* u8_px; position when riding */
RAM(0xFFAE, u8, enemy_target_y); /* u8_px; what enemies chase */
RAM(0xFFAF, u8, enemy_target_x); /* u8_px; what enemies chase */
RAM(0xC6A2, u8, health); /* quarter_hearts; quarters of a heart */
RAM(0xC6A3, u8, max_health); /* quarter_hearts; quarters of a heart */
RAM(0xC6A4, u8, heart_pieces); /* u8; 0-3, four make a container */
RAM(0xCBE4, u8, displayed_hearts); /* quarter_hearts; what the status bar shows, lags behind */
RAM(0xC6A5, u16, rupees); /* bcd16le; money, 0-999 */
RAM(0xC6A7, u16, ore_chunks); /* bcd16le; money of the lower world */
RAM(0xCBE6, u16, displayed_rupees); /* bcd16le; what the status bar shows, lags behind */
RAM(0xCBE5, u8, displayed_money_pointer); /* enum; a5 rupees, a7 ore */
RAM(0xC6AA, u8, bombs); /* bcd8; bombs carried */
RAM(0xC6AB, u8, max_bombs); /* bcd8; bombs that fit */
RAM(0xC6AD, u8, bombchus); /* bcd8; running bombs carried */
RAM(0xC6B5, u8, ember_seeds); /* bcd8; seeds carried */
RAM(0xC6B6, u8, scent_seeds); /* bcd8; seeds carried */
RAM(0xC6B7, u8, pegasus_seeds); /* bcd8; seeds carried */
RAM(0xC6B8, u8, gale_seeds); /* bcd8; seeds carried */
RAM(0xC6B9, u8, mystery_seeds); /* bcd8; seeds carried */
RAM(0xC6BA, u8, gasha_seeds); /* bcd8; nuts carried */
RAM(0xC6AC, u8, sword_level); /* u8; 0 none, 1-3 */
RAM(0xC6A9, u8, shield_level); /* u8; 1 on a new file without a shield: ownership is the treasure flag */
RAM(0xC6AE, u8, satchel_level); /* u8; 0 none, 1-3 */
RAM(0xC6B1, u8, boomerang_level); /* u8; 0 none, 1-2 */
RAM(0xC6B3, u8, slingshot_level); /* u8; 0 none, 1-2 */
RAM(0xC6B4, u8, feather_level); /* u8; 0 none, 1 feather, 2 cape */
RAM(0xC6B2, u8, magnet_polarity); /* enum; polarity, not ownership */
RAM(0xC6AF, u8, flute_icon); /* enum; 0 none, 1-3 which animal */
RAM(0xC610, u8, animal_companion); /* enum; animal of this file */
RAM(0xC6B0, u8, seasons_obtained); /* bits; bit per season the rod can call */
RAM(0xC6BB, u8, essences); /* bits; bit per essence */
RAM(0xC6BC, u8, trade_item); /* enum; step of the trading sequence, valid with treasure 41 */
RAM(0xC6BD, u8, pirate_bell_state); /* enum; 0 none */
RAM(0xC680, u8, equipped_b); /* enum; item on B, 0 none */
RAM(0xC681, u8, equipped_a); /* enum; item on A, 0 none */
RAMV(0xC682, u8, inventory, 16); /* bytes; items in the menu grid */
RAM(0xC6BE, u8, satchel_selected); /* enum; kind of seed in the satchel */
RAM(0xC6BF, u8, slingshot_selected); /* enum; kind of seed in the slingshot */
RAMV(0xC6C0, u8, ring_box_contents, 5); /* bytes; ring ids, ff empty */
RAM(0xC6C5, u8, active_ring); /* u8; ring worn, ff none */
RAM(0xC6C6, u8, ring_box_level); /* u8; 0-3 */
RAMV(0xC616, u8, rings_owned, 8); /* bitset; bit per ring */
RAM(0xC6C7, u8, unappraised_count); /* bcd8; rings not yet identified */
RAMV(0xC66E, u8, small_keys, 12); /* bytes; keys held, one byte per dungeon */
RAMV(0xC67A, u8, boss_keys, 2); /* bitset; bit per dungeon */
RAMV(0xC67C, u8, compasses, 2); /* bitset; bit per dungeon */
RAMV(0xC67E, u8, dungeon_maps, 2); /* bitset; bit per dungeon */
RAMV(0xC662, u8, dungeon_visited_floors, 12); /* bitset; bit per floor, one byte per dungeon */
RAMV(0xC692, u8, treasure_flags, 16); /* bitset; bit per treasure: the test of owning anything */
RAM(0xCCC2, u8, upgrades); /* bits; bits, cleared by transitions */
RAMV(0xC6CA, u8, global_flags, 16); /* bitset; bit per event of the story */
RAM(0xC6E1, u8, inserted_jewels); /* bits; bits */
RAM(0xC6C9, u8, golden_enemies); /* bits; bits */
RAM(0xC63F, u8, shop_bought_1); /* bits; bit per thing bought */
RAM(0xC640, u8, shop_bought_2); /* bits; bit per thing bought */
RAM(0xC642, u8, subrosian_market); /* bits; bit per thing bought */
RAM(0xC643, u8, ricky_state); /* bits; bits */
RAM(0xC644, u8, dimitri_state); /* bits; bits */
RAM(0xC645, u8, moosh_state); /* bits; bits */
RAM(0xCC39, u8, maku_tree_stage); /* enum; recomputed by its script */
RAM(0xC6DF, u8, maku_growth); /* u8; growth of the tree */
RAM(0xC61E, u16, deaths); /* bcd16le; counts at the game-over screen */
RAM(0xC620, u16, enemies_killed); /* u16le; plain binary, stops at 1000 */
RAM(0xC627, u16, rupees_collected); /* bcd16le; money ever found */
RAM(0xC626, u8, signs_destroyed); /* u8; count */
RAM(0xC63E, u8, maple_kill_counter); /* u8; kills since the witch came */
RAMV(0xC64A, u8, gasha_planted, 2); /* bitset; bit per spot */
RAMV(0xC64C, u8, gasha_kill_counters, 16); /* bytes; kills per spot, planted or not */
RAM(0xC649, u8, gasha_flags); /* bits; bits */
RAM(0xC65C, u16, gasha_maturity); /* u16le; grows with scrolls and kills */
RAMV(0xC602, u8, link_name, 6); /* bytes; five characters and 0 */
RAM(0xC612, u8, file_linked); /* bool; this file is linked */
RAM(0xC613, u8, file_hero); /* bool; second round */
RAM(0xC614, u8, file_completed); /* bool; finished before */
RAM(0xC629, u8, text_speed); /* enum; 0 slow to 4 fast */
RAMV(0xC700, u8, room_flags_overworld, 256); /* bytes; group 0: 10 visited, 20 item taken, 80 opened for good */
RAMV(0xC800, u8, room_flags_subrosia_indoor, 256); /* bytes; groups 1 to 3 */
RAMV(0xC900, u8, room_flags_group4, 256); /* bytes; groups 4 and 6: 01-08 key door opened, 80 boss beaten */
RAMV(0xCA00, u8, room_flags_group5, 256); /* bytes; groups 5 and 7 */
RAM(0xCBA0, u8, text_active); /* enum; 0 none, 1 shown, 80 held open by a script, ff closing; also 1 in the item menu */
RAM(0xCBA1, u8, text_display_mode); /* enum; 0 plain, 1 choosing, 2 text of a menu */
RAM(0xCBA2, u8, text_index_low); /* u8; number of the text, low byte */
RAM(0xCBA3, u8, text_index_high); /* u8; number of the text, high byte plus 4 */
RAM(0xCBA5, u8, text_option); /* u8; ff until chosen, then the choice */
RAM(0xCBAC, u8, textbox_position); /* enum; where the box is drawn */
RAM(0xCBAE, u8, textbox_flags); /* bits; 02 cannot be left */
RAM(0xCBA8, u16, text_number); /* bcd16le; number inserted into the text */
#define text_print_state ((u8 *)0xD0C0) /* bank 7; 1 bytes; 2 printing, 5 waits for a button, 0f waits to close */
#define text_status ((u8 *)0xD0C2) /* bank 7; 1 bytes; 0 last line, 1 next line, ff other */
#define text_option_cursor ((u8 *)0xD0E8) /* bank 7; 1 bytes; row of the cursor */
#define text_option_positions ((u8 *)0xD0E0) /* bank 7; 8 bytes; nonzero per choice offered */
#define text_line ((u8 *)0xD400) /* bank 7; 16 bytes; characters of the line being printed */
RAM(0xCBCB, u8, menu_type); /* enum; 0 none, 1 items, 2 map, 3 save */
RAM(0xCBCC, u8, menu_load_state); /* enum; 1 while the menu is open */
RAM(0xCBCD, u8, menu_active_state); /* enum; 1 at rest, 3 scrolling */
RAM(0xCBCF, u8, menu_page); /* enum; page of the item menu */
RAM(0xCBD0, u8, menu_cursor_page0); /* u8; cursor in the item grid */
RAM(0xCBD1, u8, menu_cursor_page1); /* u8; cursor of the second page */
RAM(0xCBD2, u8, menu_cursor_page2); /* u8; cursor of the third page */
RAM(0xCBB6, u8, map_cursor_room); /* u8; room under the cursor of the map */
RAM(0xCBB3, u8, save_menu_state); /* enum; 1 choosing; shares its byte with other menus */
RAM(0xCBB4, u8, save_menu_is_game_over); /* bool; 1 on the game-over screen; shares its byte */
RAM(0xCBB5, u8, save_menu_cursor); /* enum; 0 continue, 1 save and continue, 2 save and quit */
RAM(0xCC02, u8, menu_disabled); /* enum; nonzero: START does nothing */
RAM(0xCBCA, u8, disable_link_collisions_menu); /* bool; warps, chests, shocks */
RAM(0xCCA4, u8, disabled_objects); /* bits; 01 hero, 02 people, 04 enemies, 10 items, 80 all but people */
RAM(0xCBC3, u8, simulated_input); /* enum; 1 a script moves the hero */
RAM(0xCC04, u8, cutscene_trigger); /* enum; scene requested */
RAM(0xCC03, u8, cutscene_state); /* u8; step within the scene */
RAM(0xC481, u8, keys_held); /* bits; bit 0 A, 1 B, 2 SELECT, 3 START, 4 right, 5 left, 6 up, 7 down */
RAM(0xC482, u8, keys_new); /* bits; buttons pressed in this frame */
RAM(0xCC45, u8, game_keys_held); /* bits; what the hero obeys */
RAM(0xCC46, u8, game_keys_new); /* bits; what the hero obeys, pressed in this frame */
RAM(0xCCEA, u8, in_shop); /* bits; 02 in a shop */
RAM(0xCCEE, u8, informative_texts_shown); /* bits; hints already shown in this room */
RAM(0xCC30, u8, num_enemies); /* u8; enemies still to be beaten in this room, not their number on screen */
RAM(0xCC31, u8, toggle_state); /* bits; bit per orb hit in this dungeon */
RAM(0xCC32, u8, switch_state); /* bits; bit per lever in this dungeon */
RAM(0xCC33, u8, spinner_state); /* bits; bit per spinner */
RAM(0xCCBA, u8, active_triggers); /* bits; bit per floor button held down; cleared by a room change */
RAM(0xCCA9, u8, torches_lit); /* u8; torches burning in this room */
RAM(0xCFC1, u8, door_controller_state); /* u8; scratch */
RAM(0xCFC0, u8, keyhole_opened); /* bits; bit 0 */
RAM(0xCCAD, u8, open_shutters); /* u8; shutters of this room that are open, bit 7 boss waits */
RAM(0xCCC0, u8, block_push_angle); /* u8; direction of the last push */
RAM(0xCCBC, u8, last_opened_chest_pos); /* yx_nibbles; cell of the chest opened in this room */
RAMV(0xCCBD, u8, chest_override, 2); /* bytes; treasure placed by a script */
RAM(0xCCC6, u8, poked_tile_index); /* u8; metatile */
RAM(0xCCC7, u8, poked_tile_pos); /* yx_nibbles; cell */
RAM(0xD140, u8, pushed_object_enabled); /* u8; nonzero while a block slides */
RAM(0xD141, u8, pushed_object_id); /* u8; 14 while a block slides */
RAM(0xD040, u8, reserved_interaction0_enabled); /* u8; nonzero while a treasure rises */
RAM(0xD041, u8, reserved_interaction0_id); /* u8; 60 while a treasure rises */
RAMV(0xCC1F, u8, rooms_enemies_killed_list, 16); /* bitset; rooms whose enemies stay dead, the last eight */
RAM(0xCEC9, u8, room_killed_bitset); /* bits; bit per enemy of this room */
RAM(0xCCF5, u8, changed_tile_head); /* u8; moves when a tile changes */
RAM(0xCCF6, u8, changed_tile_tail); /* u8; moves when a tile changes */
RAMV(0xC0A0, u8, sound_queue, 16); /* bytes; ring of sound ids: the log of what just happened */
RAM(0xFFB2, u8, sound_queue_head); /* u8; next entry to be played, a0-af */
RAM(0xFFB3, u8, sound_queue_tail); /* u8; next free entry, a0-af */
#define objects_bank1 ((u8 *)0xD000) /* 4096 bytes; 16 pages of four object slots: hero and items, people, enemies, parts */
RAMV(0xCCCA, u8, talkable_list, 32); /* bytes; page and low byte of each object that answers to A */
RAMV(0xCC8E, u8, grabbable_list, 16); /* bytes; low byte and page of each object that can be lifted */
RAM(0xCCF0, u8, scent_seed_active); /* bool; enemies follow a scent */
RAM(0xCCF1, u8, slingshot_seed_in_flight); /* bool; a seed flies */
RAMV(0xCD80, u8, static_objects, 128); /* bytes; objects that stay in a dungeon */
RAMV(0xCB00, u8, oam_shadow, 160); /* bytes; 40 sprites as y, x, tile, attributes */
RAMV(0xCE00, u8, room_collisions, 176); /* bytes; 16 a row: low nibble solid quarters, 10 hazard, ff edge */
RAMV(0xCF00, u8, room_layout, 176); /* bytes; 16 a row: metatile ids */
#define tile_collision_table ((u8 *)0xDB00) /* bank 3; 256 bytes; collision of each metatile */
#define room_layout_original ((u8 *)0xDF00) /* bank 3; 192 bytes; layout as it was loaded */
RAM(0xCCA0, u8, room_edge_y); /* u8_px; last row */
RAM(0xCCA1, u8, room_edge_x); /* u8_px; last column */
RAM(0xCD0C, u8, transition_boundary_x); /* u8_px; beyond it the room scrolls to the right */
RAM(0xCD0D, u8, transition_boundary_y); /* u8_px; beyond it the room scrolls down */
RAM(0xFF94, u8, rng1); /* u8; random generator; write both bytes to seed the game */
RAM(0xFF95, u8, rng2); /* u8; random generator */
RAM(0xCC00, u8, frame_counter); /* u8; counts game frames */
RAM(0xC622, u32, play_time); /* u32le; game frames since the file began */
RAM(0xC49E, u8, vblank_counter); /* u8; counts passes of the main loop */
RAMV(0xC600, u8, game_id, 2); /* bytes; chosen when first needed */
