/* Objects to sprites: fills the table that the machine copies to the screen once a frame.
 *
 * A sprite is 8 x 16 pixels; most pictures are two of them side by side. Attribute 20 mirrors, 40 turns upside down,
 * the low three bits are the palette.
 */
#include "game.h"

enum { MIRROR = 0x20, UPSIDE_DOWN = 0x40, TABLE_END = 160, TOP = 24, BLINK = 4 };
enum { PAL_HERO, PAL_PERSON, PAL_RED, PAL_GREEN, PAL_STEEL, PAL_GOLD, PAL_BLUE, PAL_PLUM };

u8 shown_treasure;
static u8 used;

static void put(u8 x, u8 y, u8 picture, u8 attributes) {
    u8 *entry = oam_shadow + used;
    if (used >= TABLE_END) return;
    *entry++ = y;
    *entry++ = x;
    *entry++ = picture;
    *entry = attributes;
    used += 4;
}

/* A picture of 16 x 16 around a point of the room. */
static void put_wide(u8 x, u8 y, u8 picture, u8 attributes) {
    u8 left = attributes & MIRROR ? picture + 2 : picture;
    put(x, y + TOP, left, attributes);
    put(x + 8, y + TOP, left ^ 2, attributes);
}

static void put_narrow(u8 x, u8 y, u8 picture, u8 attributes) { put(x + 4, y + TOP, picture, attributes); }

static void draw_treasure(u8 x, u8 y, u8 treasure) {
    switch (treasure) {
    case T_ESSENCE:
        put_wide(x, y, SPRITE_ESSENCE, PAL_GOLD);
        return;
    case T_BRACELET:
        put_wide(x, y, SPRITE_BRACELET, PAL_GOLD);
        return;
    case T_FLIPPERS:
        put_wide(x, y, SPRITE_FLIPPERS, PAL_BLUE);
        return;
    case T_HEART_CONTAINER:
    case T_HEART_PIECE:
        put_wide(x, y, SPRITE_CONTAINER, PAL_RED);
        return;
    case T_TRADE:
        put_wide(x, y, SPRITE_PARCEL, PAL_GOLD);
        return;
    case T_MAP:
    case T_COMPASS:
        put_wide(x, y, SPRITE_SCROLL, PAL_GOLD);
        return;
    case T_SWORD:
        put_narrow(x, y, SPRITE_SWORD_UP, PAL_STEEL);
        return;
    case T_ROD:
        put_narrow(x, y, SPRITE_ROD, PAL_GOLD);
        return;
    case T_FEATHER:
        put_narrow(x, y, SPRITE_FEATHER, PAL_STEEL);
        return;
    case T_BOMBS:
        put_wide(x, y, SPRITE_BOMB, PAL_BLUE);
        return;
    case T_SMALL_KEY:
        put_narrow(x, y, SPRITE_KEY, PAL_GOLD);
        return;
    case T_BOSS_KEY:
        put_narrow(x, y, SPRITE_BOSS_KEY, PAL_RED);
        return;
    case T_HEART:
        put_narrow(x, y, SPRITE_HEART, PAL_RED);
        return;
    default:
        put_narrow(x, y, SPRITE_RUPEE, PAL_GREEN);
    }
}

static void draw_sword(void) {
    switch (hero.direction) {
    case UP:
        put_narrow(weapon.x, weapon.y, SPRITE_SWORD_UP, PAL_STEEL);
        break;
    case DOWN:
        put_narrow(weapon.x, weapon.y, SPRITE_SWORD_UP, PAL_STEEL | UPSIDE_DOWN);
        break;
    case RIGHT:
        put_wide(weapon.x, weapon.y, SPRITE_SWORD_SIDE, PAL_STEEL);
        break;
    default:
        put_wide(weapon.x, weapon.y, SPRITE_SWORD_SIDE, PAL_STEEL | MIRROR);
    }
}

static void draw_hero(void) {
    u8 stride = (hero.counter2 >> 3) & 1, y = hero.y + hero.z;
    u8 mirror = stride ? MIRROR : 0;
    if (hero.invincibility & BLINK) return;
    if (hero.state == HERO_FALLING) {
        put_wide(hero.x, hero.y, active_tile_type == GROUND_WATER ? SPRITE_SPLASH : SPRITE_PUFF, PAL_BLUE);
        return;
    }
    if (link_swimming) {
        put_wide(hero.x, hero.y, SPRITE_SWIM, PAL_HERO);
        return;
    }
    if (hero.z) put_wide(hero.x, hero.y + 2, SPRITE_SHADOW, PAL_PLUM);
    switch (hero.state == HERO_ITEM ? DOWN : hero.direction) {
    case UP:
        put_wide(hero.x, y, SPRITE_HERO_UP, mirror);
        break;
    case DOWN:
        put_wide(hero.x, y, hero.state == HERO_ITEM ? SPRITE_HERO_ITEM : SPRITE_HERO_DOWN, mirror);
        break;
    case LEFT:
        put_wide(hero.x, y, stride ? SPRITE_HERO_SIDE_2 : SPRITE_HERO_SIDE, 0);
        break;
    default:
        put_wide(hero.x, y, stride ? SPRITE_HERO_SIDE_2 : SPRITE_HERO_SIDE, MIRROR);
    }
}

static void draw_items(void) {
    if (shown_treasure) draw_treasure(hero.x, hero.y - 15, shown_treasure);
    if (sword_timer) draw_sword();
    if (carried.enabled) put_wide(carried.x, carried.y + carried.z, SPRITE_ROCK, carried.subid == TILE_POT ? PAL_RED : PAL_STEEL);
    if (sliding.enabled) put_wide(sliding.x, sliding.y, SPRITE_BLOCK, PAL_PLUM);
    if (!bomb.enabled) return;
    if (bomb.state == 2) put_wide(bomb.x, bomb.y, bomb.counter1 & 4 ? SPRITE_BLAST : SPRITE_PUFF, PAL_RED);
    else put_wide(bomb.x, bomb.y, SPRITE_BOMB, (bomb.counter1 < 32 && (bomb.counter1 & 4)) ? PAL_RED : PAL_BLUE);
}

/* People breathe: they are mirrored twice a second. `subid` is the look: picture and palette. */
static void draw_people(void) {
    static const u8 pictures[] = {SPRITE_ELDER, SPRITE_WOMAN, SPRITE_MAN, SPRITE_KEEPER, SPRITE_CHILD, SPRITE_MERCHANT};
    static const u8 palettes[] = {PAL_BLUE, PAL_RED, PAL_GREEN, PAL_STEEL, PAL_GOLD, PAL_PLUM};
    u8 n;
    Object *object;
    for (n = 0; n < PEOPLE; ++n) {
        object = person_slot(n);
        if (!object->enabled || !object->state) continue;
        if (object->id == PERSON) put_wide(object->x, object->y, pictures[object->subid], palettes[object->subid] | (frame_counter & 32 ? MIRROR : 0));
        else draw_treasure(object->x, object->y, object->treasure_id);
    }
}

static void draw_parts(void) {
    u8 n;
    Object *part;
    for (n = 0; n < PARTS; ++n) {
        part = part_slot(n);
        if (!part->enabled) continue;
        if (part->id == PART_PUFF) put_wide(part->x, part->y, part->subid ? SPRITE_LEAVES : SPRITE_PUFF, part->subid ? PAL_GREEN : PAL_STEEL);
        else if (part->id == PART_SHOT) put_narrow(part->x, part->y, SPRITE_SHOT, PAL_STEEL);
        else if (part->counter1 < 60 && (part->counter1 & BLINK)) continue;
        else draw_treasure(part->x, part->y, part->subid == DROP_HEART ? T_HEART : part->subid == DROP_BOMBS ? T_BOMBS : T_RUPEES);
    }
}

static void draw_boss(const Object *boss) {
    u8 mirror = frame_counter & 16 ? MIRROR : 0;
    put_wide(boss->x - 8, boss->y - 8, mirror ? SPRITE_BOSS_TOP_2 : SPRITE_BOSS_TOP, PAL_RED);
    put_wide(boss->x + 8, boss->y - 8, mirror ? SPRITE_BOSS_TOP_2 : SPRITE_BOSS_TOP, PAL_RED | MIRROR);
    put_wide(boss->x - 8, boss->y + 8, SPRITE_BOSS_BOTTOM, PAL_RED);
    put_wide(boss->x + 8, boss->y + 8, SPRITE_BOSS_BOTTOM, PAL_RED | MIRROR);
}

static void draw_enemy(const Object *enemy) {
    u8 mirror = frame_counter & 8 ? MIRROR : 0;
    switch (enemy->id) {
    case ENEMY_WALKER:
        put_wide(enemy->x, enemy->y, SPRITE_WALKER, PAL_RED | mirror);
        break;
    case ENEMY_CHARGER:
        put_wide(enemy->x, enemy->y, SPRITE_CHARGER, PAL_BLUE | (enemy->direction == RIGHT ? MIRROR : 0));
        break;
    case ENEMY_BAT:
        put_wide(enemy->x, enemy->y, enemy->substate && mirror ? SPRITE_BAT_2 : SPRITE_BAT, PAL_PLUM);
        break;
    case ENEMY_SPITTER:
        put_wide(enemy->x, enemy->y, SPRITE_SPITTER, PAL_GREEN | (frame_counter & 16 ? MIRROR : 0));
        break;
    default:
        draw_boss(enemy);
    }
}

static void draw_enemies(void) {
    u8 n;
    Object *enemy;
    for (n = 0; n < ENEMIES; ++n) {
        enemy = enemy_slot(n);
        if (enemy->enabled && !(enemy->invincibility & BLINK)) draw_enemy(enemy);
    }
}

void draw_sprites(void) {
    used = 0;
    if (!menu_type && scroll_mode != 2) {
        if (scroll_mode == 1) draw_items();
        draw_hero();
        if (scroll_mode == 1) {
            draw_parts();
            draw_enemies();
            draw_people();
        }
    }
    while (used < TABLE_END) {
        oam_shadow[used] = 0;
        used += 4;
    }
}
